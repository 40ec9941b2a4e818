package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Settings are the settings of one command after all layers.
type Settings struct {
	URL string // of the server
	// Context is the name of the server, with which its session is kept; empty if it
	// has none.
	Context string
	Given   Given
	Printer *output.Printer
	Store   *login.Store
	apiKey  string
	verbose bool
}

// Given are the server and the context that somebody named, of which the nearer one
// counts.
type Given struct {
	URL, Context         string
	urlFrom, contextFrom settings.Kind
}

// Settings layers flags over CARILLON_ variables over the file of --config
// over defaults, and finds the server.
func (a *App) Settings() (Settings, error) {
	r, file, err := a.Layers()
	if err == nil {
		err = r.locate()
	}
	if err != nil {
		return Settings{}, err
	}
	r.apiKey, err = a.APIKey(file)
	if c, _, findErr := r.Store.Find(r.Context); err == nil && r.apiKey == "" && c.Session == nil && c.APIKeyFile != "" {
		r.apiKey, err = a.APIKey(c.APIKeyFile)
		err = errors.Join(err, findErr)
	}
	return r, err
}

// Layers are the settings before it is known which server they mean.
func (a *App) Layers() (r Settings, apiKeyFile string, err error) {
	file := a.flags.Lookup("config").Value.String()
	if file == "" {
		file = a.getenv(settings.Variable("config"))
	}
	from, err := settings.Resolve(a.flags, file)
	if err == nil {
		err = from.Err()
	}
	if err != nil {
		return r, "", &exitError{ExitUsage, err}
	}
	if r.Store, err = login.DefaultStore(); err != nil {
		return r, "", err
	}
	value := func(name string) string { return a.flags.Lookup(name).Value.String() }
	format, err := output.ParseFormat(value("output"))
	if err != nil {
		return r, "", &exitError{ExitUsage, err}
	}
	r.verbose, r.Printer = value("verbose") == "true", a.printer(format, value("no-color") == "true")
	r.Given = Given{URL: value("url"), Context: value("context"), urlFrom: from.From("url"), contextFrom: from.From("context")}
	if r.Given.URL != "" {
		u, err := apiclient.ParseURL(r.Given.URL)
		if err != nil {
			return r, "", &exitError{ExitUsage, err}
		}
		r.Given.URL = u.String() // one spelling, because contexts are found by it
	}
	return r, value("api-key-file"), nil
}

// locate finds the server and its context: the one that is named, else the current
// one, else the default.
func (r *Settings) locate() (err error) {
	g := r.Given
	switch {
	case g.URL != "" && g.Context != "" && g.urlFrom == g.contextFrom:
		return Usagef("give --url or --context, not both")
	case g.URL != "" && !g.contextFrom.Nearer(g.urlFrom):
		r.URL = g.URL
		r.Context, err = r.Store.NameOf(r.URL)
		return err
	case g.Context != "":
		return r.LocateNamed(g.Context)
	}
	all, current, err := r.Store.Contexts()
	if err != nil {
		return err
	}
	r.Context, r.URL = current, all[current].Server
	if r.URL == "" {
		r.URL = DefaultURL
		r.Context, err = r.Store.NameOf(r.URL)
	}
	return err
}

// LocateNamed finds the server of a context.
func (r *Settings) LocateNamed(name string) error {
	all, _, err := r.Store.Contexts()
	if err != nil {
		return err
	}
	c, ok := all[name]
	if !ok {
		return noContext(name, all)
	}
	r.Context, r.URL = name, c.Server
	return nil
}

// APIKey comes from the environment or a file, never from a flag: flags are
// seen by every user of the machine.
func (a *App) APIKey(file string) (string, error) {
	if key := a.getenv(settings.Prefix + "API_KEY"); key != "" {
		return key, nil
	}
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", Usagef("api-key-file: %w", err)
	}
	key := FirstLine(string(raw))
	if key == "" {
		return "", Usagef("api-key-file: %s is empty", file)
	}
	return key, nil
}

// Define finds what a login is kept as: under the name that is given, or under
// that of the server. A context stays at its server: where a nearer URL is that of
// another one, the URL counts, as it does for all commands.
func (r *Settings) Define() error {
	all, current, err := r.Store.Contexts()
	if err != nil {
		return err
	}
	g := r.Given
	known, exists := all[g.Context]
	elsewhere := exists && g.URL != "" && g.URL != known.Server && !g.contextFrom.Nearer(g.urlFrom)
	switch {
	case elsewhere && g.contextFrom == g.urlFrom:
		return Fail(ExitConflict, fmt.Errorf("the context %q is %s, not %s; give another name, or forget it first: carillon context remove %s", g.Context, known.Server, g.URL, g.Context))
	case elsewhere:
		r.URL = g.URL
	case g.Context != "":
		if err := CheckContextName(g.Context); err != nil {
			return err
		}
		r.Context, r.URL = g.Context, g.URL
		if exists && (g.URL == "" || g.contextFrom.Nearer(g.urlFrom)) {
			r.URL = known.Server
		}
	case g.URL == "" && current != "":
		r.Context, r.URL = current, all[current].Server
	default:
		r.URL = g.URL
	}
	if r.URL == "" {
		r.URL = DefaultURL
	}
	if r.Context == "" {
		r.Context, err = r.Store.NameOf(r.URL)
	}
	if r.Context == "" {
		r.Context = freeName(r.URL, all)
	}
	return err
}

// freeName is the server's host, with a number if another context is called that.
func freeName(server string, all map[string]login.Context) string {
	host := server
	if u, err := url.Parse(server); err == nil {
		host = u.Host
	}
	name := host
	for i := 2; ; i++ {
		if _, taken := all[name]; !taken {
			return name
		}
		name = host + "-" + strconv.Itoa(i)
	}
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}$`)

// CheckContextName refuses what cannot be the name of a context.
func CheckContextName(name string) error {
	if !contextName.MatchString(name) {
		return Usagef("%q is no name for a context: take letters, digits and . _ : @ -, at most 100", name)
	}
	return nil
}

func noContext(name string, all map[string]login.Context) error {
	text := fmt.Sprintf("there is no context %q", name)
	if hint := spelling.Hint(name, slices.Collect(maps.Keys(all))); hint != "" {
		text += "; " + hint
	}
	return &exitError{ExitNotFound, errors.New(text + "; see: carillon context list")}
}
