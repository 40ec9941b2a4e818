// Package settings answers: where does a setting come from?
//
// Each flag of a command can also be given as an environment variable
// (CARILLON_ and the flag's name, upper case, dashes as underscores) and as a
// key of the YAML file named by --config. A flag wins over the environment,
// the environment over the file, the file over the default.
package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Prefix of the environment variables.
const Prefix = "CARILLON_"

// Load layers file, environment and flags. The result's keys are the flags'
// names. configFile may be empty. A key in the file that is no flag is an
// error, because it would be a setting that does not act.
func Load(flags *pflag.FlagSet, configFile string) (*koanf.Koanf, error) {
	k := koanf.New(".")
	if configFile != "" {
		if err := k.Load(file.Provider(configFile), yaml.Parser()); err != nil {
			return nil, fmt.Errorf("config file %s: %w", configFile, err)
		}
		for _, key := range k.Keys() {
			if flags.Lookup(key) == nil {
				return nil, fmt.Errorf("config file %s: there is no setting %q%s", configFile, key, nearest(flags, key))
			}
		}
	}
	fromEnv := env.Provider(".", env.Opt{Prefix: Prefix, TransformFunc: func(name, value string) (string, any) {
		key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, Prefix)), "_", "-")
		if flags.Lookup(key) == nil {
			return "", nil // another program's, or another command's
		}
		return key, value
	}})
	if err := k.Load(fromEnv, nil); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return nil, fmt.Errorf("flags: %w", err)
	}
	return k, nil
}

// nearest suggests the flag whose name shares the longest beginning.
func nearest(flags *pflag.FlagSet, key string) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if n := min(3, len(key), len(f.Name)); n > 0 && f.Name[:n] == key[:n] {
			names = append(names, f.Name)
		}
	})
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "; did you mean " + strings.Join(names, " or ") + "?"
}
