// Package settings answers: where does a setting come from?
//
// Each flag of a command can also be given as an environment variable
// (CARILLON_ and the flag's name, upper case, dashes as underscores) and as a
// key of the YAML file named by --config. A flag wins over the environment,
// the environment over the file, the file over the default.
package settings

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/internal/document"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Prefix of the environment variables.
const Prefix = "CARILLON_"

// Variable is the name of the environment variable of a flag.
func Variable(flag string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Kind is where a value was given.
type Kind string

// The kinds; a later one wins over those before it.
const (
	Default      Kind = "default"
	File         Kind = "file"
	Environment  Kind = "variable"
	OnTheCommand Kind = "flag"
)

// Setting is one flag with its value, and where that is from.
type Setting struct {
	Flag *pflag.Flag
	From Kind
	// Where names the place: a flag, a variable, or a file with its line.
	Where string
	// Err is why the value is not taken.
	Err error
}

// Resolved is what Resolve found.
type Resolved struct {
	Settings []Setting
	// Unknown are the keys of the file that are no flag: they would not act.
	Unknown []error
}

// Load layers file, environment and flags. What was no flag on the command line is
// put into it as if it were one, so that a value means the same wherever it stands.
// The result's keys are the flags' names. configFile may be empty. A key in the file
// that is no flag is an error, because it would be a setting that does not act; so is
// a value that the flag would not take. An empty one is none.
func Load(flags *pflag.FlagSet, configFile string) (*koanf.Koanf, error) {
	resolved, err := Resolve(flags, configFile)
	if err == nil {
		err = resolved.Err()
	}
	if err != nil {
		return nil, err
	}
	k := koanf.New(".")
	return k, k.Load(posflag.Provider(flags, ".", k), nil)
}

// Err is the first mistake.
func (r *Resolved) Err() error {
	if len(r.Unknown) > 0 {
		return r.Unknown[0]
	}
	for _, s := range r.Settings {
		if s.Err != nil {
			return s.Err
		}
	}
	return nil
}

// From says where the value of a flag is from.
func (r *Resolved) From(name string) Kind {
	for _, s := range r.Settings {
		if s.Flag.Name == name {
			return s.From
		}
	}
	return Default
}

// Nearer reports whether a value that is given here wins over one that is given there.
func (k Kind) Nearer(other Kind) bool { return rank[k] > rank[other] }

var rank = map[Kind]int{Default: 0, File: 1, Environment: 2, OnTheCommand: 3}

// Resolve is Load that goes on after a mistake, and says where values are from. Its
// error is that the file cannot be read.
func Resolve(flags *pflag.FlagSet, configFile string) (out Resolved, err error) {
	inFile, err := readFile(configFile)
	if err != nil {
		return out, err
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
		out.Settings = append(out.Settings, resolve(f, configFile, inFile[f.Name]))
	})
	for name, key := range inFile {
		if flags.Lookup(name) == nil {
			hint := spelling.Hint(name, names)
			if hint != "" {
				hint = "; " + hint
			}
			out.Unknown = append(out.Unknown, fmt.Errorf("config file %s:%d: there is no setting %q%s", configFile, key.line, name, hint))
		}
	}
	return out, nil
}

// resolve gives a flag the value that wins.
func resolve(f *pflag.Flag, configFile string, key fileKey) Setting {
	if f.Changed {
		return Setting{Flag: f, From: OnTheCommand, Where: "--" + f.Name}
	}
	s := Setting{Flag: f, From: Environment, Where: Variable(f.Name)}
	if text := os.Getenv(s.Where); text != "" && !isLink(s.Where, text) {
		if err := setText(f, text); err != nil {
			s.Err = fmt.Errorf("%s: %w", s.Where, err)
		}
		return s
	}
	if v := key.value; v == nil || v.Kind == document.Null || v.Kind == document.Text && v.Text == "" {
		return Setting{Flag: f, From: Default}
	}
	s.From, s.Where = File, fmt.Sprintf("%s:%d", configFile, key.line)
	if err := set(f, key.value); err != nil {
		s.Err = fmt.Errorf("config file %s: %s: %w", s.Where, f.Name, err)
	}
	return s
}

// fileKey is a value of the file; zero = there is none.
type fileKey struct {
	value *document.Value
	line  int
}

func readFile(path string) (map[string]fileKey, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	values, err := document.Read(raw)
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	out := map[string]fileKey{}
	switch {
	case len(values) == 0 || len(values) == 1 && values[0].Kind == document.Null:
	case len(values) > 1:
		return nil, fmt.Errorf("config file %s: line %d: it has a second document; write all settings into one", path, values[1].Line)
	case values[0].Kind != document.Object:
		return nil, fmt.Errorf("config file %s: line %d: want settings, such as http-addr: 127.0.0.1:8080", path, values[0].Line)
	default:
		for _, m := range values[0].Members {
			out[m.Name] = fileKey{m.Value, m.Line}
		}
	}
	return out, nil
}

// set gives a flag what stands in a file: one value, a list or a map. The flag judges
// each value as it is written.
func set(f *pflag.Flag, value *document.Value) error {
	list, isList := f.Value.(pflag.SliceValue)
	switch value.Kind {
	case document.List:
		if !isList {
			return errors.New("it takes one value, not a list")
		}
		texts := make([]string, len(value.Items))
		for i, item := range value.Items {
			if !item.IsScalar() {
				return errors.New("it takes a list of single values")
			}
			texts[i] = item.Text
		}
		return list.Replace(texts)
	case document.Object:
		if f.Value.Type() != "stringToString" {
			return errors.New("it takes one value, not several with names")
		}
		for _, m := range value.Members {
			if !m.Value.IsScalar() {
				return fmt.Errorf("%s takes one value", m.Name)
			}
			if err := f.Value.Set(m.Name + "=" + m.Value.Text); err != nil {
				return err
			}
		}
		return nil
	}
	return setText(f, value.Text)
}

func setText(f *pflag.Flag, text string) error {
	list, isList := f.Value.(pflag.SliceValue)
	if !isList {
		return Told(f.Value.Set(text), text)
	}
	texts := strings.Split(text, ",")
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	return list.Replace(texts)
}

// Told rewrites the error of a parser of numbers or booleans for the user.
func Told(err error, text string) error {
	number, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case !ok:
		return err
	case number.Func == "ParseBool":
		return fmt.Errorf("%q is neither true nor false", text)
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%q is too large a number", text)
	}
	return fmt.Errorf("%q is no number; give digits alone, for example 25", text)
}
