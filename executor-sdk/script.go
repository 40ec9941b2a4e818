package executor

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/proto"
)

// Script is one revision of a script that the admin keeps. The programs that
// run scripts, such as `carillon agent`, get it with their task and must call
// Verify before they run it.
type Script struct {
	ID       int64
	Name     string
	Revision int64
	Language string // shell, python, node, php or powershell
	SHA256   []byte // of Content
	Content  []byte
	Args     []string

	tenant    int64
	signature []byte
	refusal   string
}

// MaxScript bounds a script's content, in bytes.
const MaxScript = proto.MaxScript

// Verify says why the script must not run, or nil: the admin refuses it, it is
// in another language than the one asked for, or its content is not what its
// digest says. With keys, one of them must have signed the revision.
func (s *Script) Verify(language string, keys ...ed25519.PublicKey) error {
	switch sum := sha256.Sum256(s.Content); {
	case s.refusal != "":
		return fmt.Errorf("the admin refuses it: %s", s.refusal)
	case s.Language != language:
		return fmt.Errorf("script %q is in %q, not in %q", s.Name, s.Language, language)
	case len(s.Content) > MaxScript:
		return fmt.Errorf("script %q has %d bytes, the limit is %d", s.Name, len(s.Content), MaxScript)
	case !bytes.Equal(sum[:], s.SHA256):
		return fmt.Errorf("the content of script %q revision %d has the digest %x, and %x is named", s.Name, s.Revision, sum, s.SHA256)
	}
	if len(keys) == 0 {
		return nil
	}
	message := proto.ScriptMessage(s.tenant, s.ID, s.Revision, s.Language, s.SHA256)
	signed := func(key ed25519.PublicKey) bool {
		return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, s.signature)
	}
	if !slices.ContainsFunc(keys, signed) {
		return errors.New("no key that is trusted here has signed this revision")
	}
	return nil
}

func scriptOf(o *proto.Offer) *Script {
	s := o.GetScript()
	if s == nil {
		return nil
	}
	return &Script{
		ID: s.GetId(), Name: s.GetName(), Revision: s.GetRevision(), Language: s.GetLanguage(),
		SHA256: s.GetSha256(), Content: s.GetContent(), Args: s.GetArgs(),
		tenant: o.GetTenantId(), signature: s.GetSignature(), refusal: s.GetRefusal(),
	}
}
