package domain

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Script is a version of a script, as agents get it.
type Script struct {
	ID        ScriptID
	TenantID  TenantID
	Name      string
	Language  string // fixed: another language is another handler
	Version   int64
	Content   string
	SHA256    []byte // of Content
	Signature []byte // Ed25519 over proto.ScriptMessage
}

// ScriptUse is the script that a job runs.
type ScriptUse struct {
	ID       ScriptID
	Revision int64    // 0 = whichever is the newest when it starts
	Args     []string // may hold templates, which the agent expands
}

// ScriptPolicy is what agents may do for a tenant. The zero value allows
// nothing. Each change is kept.
type ScriptPolicy struct {
	TenantID  TenantID
	Revision  int64 // 0: nobody has decided yet
	Languages []string
	HTTP      bool
	// Callbacks is what the admin nodes themselves may call; nil: nothing.
	Callbacks *CallbackPolicy
	Note      string
	CreatedAt time.Time
	CreatedBy string
}

// CallbackPolicy is what the admin nodes may call for a tenant.
type CallbackPolicy struct {
	Hosts      []string      // patterns, as httpcall.ParseHost reads them; none: nothing may be called
	MaxTimeout time.Duration // of one call
	// PerHost is how many calls to one host each node makes at a time.
	PerHost int
	Secret  []byte // signs them; sealed
}

// Bounds of callbacks.
const (
	MaxCallbackHosts        = 64
	maxCallbackHostsSize    = 4000
	DefaultCallbackTimeout  = 30 * time.Second
	MaxCallbackTimeout      = 10 * time.Minute
	DefaultCallbacksPerHost = 32
	MaxCallbacksPerHost     = 512
)

// CheckCallbackPolicy validates one; its hosts have been read.
func CheckCallbackPolicy(p *CallbackPolicy) error {
	var c checker
	c.check(len(p.Hosts) <= MaxCallbackHosts && len(strings.Join(p.Hosts, ",")) <= maxCallbackHostsSize, "body.callbacks.hosts", nil, "must be at most 64, of 4,000 bytes together")
	c.check(p.MaxTimeout >= time.Millisecond && p.MaxTimeout <= MaxCallbackTimeout, "body.callbacks.maxTimeout", p.MaxTimeout.String(), "must be from 1ms to 10m")
	c.check(p.PerHost >= 1 && p.PerHost <= MaxCallbacksPerHost, "body.callbacks.perHost", p.PerHost, "must be from 1 to 512")
	return c.err()
}

// ScriptLanguages are the languages of scripts, as SPEC.md section 11 has them.
var ScriptLanguages = []string{"shell", "python", "node", "php", "powershell"}

// Handlers of agents, which need more than an executor that has them.
const (
	ScriptHandlerPrefix = "script." // and the language
	HTTPHandler         = "http.request"
)

// IsAgentHandler reports whether the handler is one of those.
func IsAgentHandler(name string) bool {
	return name == HTTPHandler || strings.HasPrefix(name, ScriptHandlerPrefix)
}

// Bounds of scripts. MaxScript is the wire's.
const (
	MaxScript     = 64 << 10
	MaxScriptArgs = 64
	maxArgsSize   = 16 << 10
)

// Refuses says why the policy does not allow a handler of agents, or "".
func (p *ScriptPolicy) Refuses(handler string) string {
	language, isScript := strings.CutPrefix(handler, ScriptHandlerPrefix)
	switch {
	case isScript && !slices.Contains(p.Languages, language):
		return "scripts in " + language + " are off for this tenant; a platform administrator switches them on (carillon script policy)"
	case handler == HTTPHandler && !p.HTTP:
		return "HTTP calls by agents are off for this tenant; a platform administrator switches them on (carillon script policy)"
	}
	return ""
}

func (c *checker) script(s *JobSpec) {
	language, isScript := strings.CutPrefix(s.Handler, ScriptHandlerPrefix)
	if !isScript {
		c.check(s.Script == nil, "body.script", nil, "only handlers script.LANGUAGE run scripts")
		return
	}
	c.check(slices.Contains(ScriptLanguages, language), "body.handler", s.Handler, "agents have "+ScriptHandlerPrefix+strings.Join(ScriptLanguages, ", "+ScriptHandlerPrefix))
	if s.Script == nil {
		c.fail("body.script", nil, "name the script that "+s.Handler+" is to run")
		return
	}
	size := 0
	for _, arg := range s.Script.Args {
		size += len(arg)
		c.check(utf8.ValidString(arg) && !strings.ContainsRune(arg, 0), "body.script.args", nil, "must be UTF-8 without zero bytes")
	}
	c.check(len(s.Script.Args) <= MaxScriptArgs && size <= maxArgsSize, "body.script.args", nil, "must be at most 64, of 16 KiB together")
	c.check(s.Script.Revision >= 0, "body.script.revision", s.Script.Revision, "must be at least 1; without it the newest runs")
}
