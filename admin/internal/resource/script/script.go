// Package script answers: which documents are scripts?
package script

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// ScriptSpec is what agents run.
type ScriptSpec struct {
	Language    string `json:"language" enum:"shell,python,node,php,powershell" doc:"What agents run it with. It never changes: another language is another handler"`
	Description string `json:"description,omitempty" maxLength:"4096" doc:"What it does, for people"`
	Content     string `json:"content,omitempty" minLength:"1" doc:"Text of the script, at most 64 KiB; absent in lists. ${{ }} in it is text of the script"`
	Note        string `json:"note,omitempty" maxLength:"1024" doc:"Why this version was written"`
}

// ScriptStatus is what an answer tells beside the spec.
type ScriptStatus struct {
	SHA256 string `json:"sha256" doc:"Digest of the content, in hexadecimal. Logs of runs name it"`
}

// Policies find what a tenant allows.
type Policies interface {
	FindScriptPolicy(ctx context.Context, tenant domain.TenantID) (domain.ScriptPolicy, error)
}

// Kind is the kind of documents that are scripts. New contents must be allowed by the policy of
// their tenant.
func Kind(policies Policies) *resource.Kind {
	return resource.Of(resource.Kind{
		Name: "Script", Noun: "script", Path: "scripts", Versioned: true, Read: domain.PermRead, Edit: domain.PermScript,
		About: "A script is what agents run.", StatusType: reflect.TypeFor[ScriptStatus](), Literal: []string{"spec.content"},
		Notes: resource.Notes{
			Create: "Refused while the tenant's policy does not allow its language.",
			Update: "Writes a new version. Jobs that follow the newest version run it from their next attempt on. Jobs that name a version go on with that.",
			Delete: "Refused while jobs use it. Its versions are kept.",
		},
	}, resource.Rules[ScriptSpec]{
		Complete: func(s *ScriptSpec) {
			s.Description, s.Note = strings.TrimSpace(s.Description), strings.TrimSpace(s.Note)
		},
		Check: func(ctx context.Context, d *resource.Draft[ScriptSpec], c *domain.Checker) error {
			Check(d, c)
			if d.Old != nil && d.Old.Spec.Content == d.Spec.Content || c.Err() != nil {
				return nil
			}
			return Allowed(ctx, policies, d.Tenant, domain.ScriptHandlerPrefix+d.Spec.Language)
		},
		Brief: func(s *ScriptSpec) { s.Content = "" },
		Status: func(d *resource.Document[ScriptSpec]) any {
			return ScriptStatus{hex.EncodeToString(Digest(d.Spec.Content))}
		},
	})
}

// Check adds the wrong fields of a script.
func Check(d *resource.Draft[ScriptSpec], c *domain.Checker) {
	s := &d.Spec
	c.Check(slices.Contains(domain.ScriptLanguages, s.Language), "body.spec.language", s.Language, "must be one of "+strings.Join(domain.ScriptLanguages, ", "))
	c.Check(d.Old == nil || d.Old.Spec.Language == s.Language, "body.spec.language", s.Language, "cannot change: create another script")
	c.Check(len(s.Description) <= 4096, "body.spec.description", nil, "must not exceed 4096 bytes")
	c.Check(s.Content != "" && len(s.Content) <= domain.MaxScript, "body.spec.content", nil, "must have 1 to 65536 bytes")
	c.Check(utf8.ValidString(s.Content) && !strings.ContainsRune(s.Content, 0), "body.spec.content", nil, "must be UTF-8 without zero bytes")
	c.Check(len(s.Note) <= 1024 && !strings.ContainsAny(s.Note, "\r\x00"), "body.spec.note", nil, "must not exceed 1024 bytes")
}

// Allowed refuses a handler of agents that the tenant's policy does not allow.
func Allowed(ctx context.Context, from Policies, tenant domain.TenantID, handler string) error {
	if !domain.IsAgentHandler(handler) {
		return nil
	}
	policy, err := from.FindScriptPolicy(ctx, tenant)
	if err != nil {
		return err
	}
	if why := policy.Refuses(handler); why != "" {
		return domain.Errorf(domain.CodePolicyRefused, "%s", why)
	}
	return nil
}

// Digest is the SHA-256 of a content. Signatures are made of it.
func Digest(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	return sum[:]
}

// Of gives a row its type. It has no signature.
func Of(row *resource.Row) (domain.Script, error) {
	d, err := resource.Read[ScriptSpec](row)
	if err != nil {
		return domain.Script{}, err
	}
	return domain.Script{
		ID: domain.ScriptID(d.ID), TenantID: d.Tenant, Name: d.Name, Language: d.Spec.Language, Version: d.Version, Content: d.Spec.Content, SHA256: Digest(d.Spec.Content),
	}, nil
}
