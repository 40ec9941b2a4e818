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
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

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
	label := s.Where
	var value any = os.Getenv(s.Where)
	if value == "" {
		value = key.value
		s.From, s.Where = File, fmt.Sprintf("%s:%d", configFile, key.line)
		label = fmt.Sprintf("config file %s: %s", s.Where, f.Name)
	}
	if value == nil || value == "" {
		return Setting{Flag: f, From: Default}
	}
	if err := set(f, value); err != nil {
		s.Err = fmt.Errorf("%s: %w", label, err)
	}
	return s
}

// fileKey is a value of the file; zero = there is none.
type fileKey struct {
	value any
	line  int
}

func readFile(path string) (map[string]fileKey, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	var tree yaml.Node
	if err == nil {
		err = yaml.Unmarshal(raw, &tree)
	}
	values := map[string]any{}
	if err == nil {
		err = tree.Decode(&values)
	}
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	out := map[string]fileKey{}
	for name, value := range values {
		out[name] = fileKey{value: value}
	}
	for _, root := range tree.Content {
		for i := 0; i+1 < len(root.Content); i += 2 {
			name := root.Content[i]
			out[name.Value] = fileKey{out[name.Value].value, name.Line}
		}
	}
	return out, nil
}

// set gives a flag a text, or what stands in a file: one value, a list or a map.
func set(f *pflag.Flag, value any) error {
	list, isList := f.Value.(pflag.SliceValue)
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		if !isList {
			return errors.New("it takes one value, not a list")
		}
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = fmt.Sprint(v[i])
		}
		return list.Replace(texts)
	case map[string]any:
		if f.Value.Type() != "stringToString" {
			return errors.New("it takes one value, not several with names")
		}
		for name, text := range v {
			if err := f.Value.Set(fmt.Sprintf("%s=%v", name, text)); err != nil {
				return err
			}
		}
		return nil
	}
	text := fmt.Sprint(value)
	switch {
	case text == "":
		return nil
	case isList:
		texts := strings.Split(text, ",")
		for i := range texts {
			texts[i] = strings.TrimSpace(texts[i])
		}
		return list.Replace(texts)
	}
	return f.Value.Set(text)
}
