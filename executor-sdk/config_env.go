package executor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The environment variables that fill zero fields of Config.
const (
	envName       = "CARILLON_EXECUTOR_NAME"
	envAddresses  = "CARILLON_EXECUTOR_ADDRESSES"
	envToken      = "CARILLON_EXECUTOR_TOKEN"
	envTokenFile  = "CARILLON_EXECUTOR_TOKEN_FILE"
	envInstance   = "CARILLON_EXECUTOR_INSTANCE"
	envVersion    = "CARILLON_EXECUTOR_VERSION"
	envGeneration = "CARILLON_EXECUTOR_GENERATION"
	envLabels     = "CARILLON_EXECUTOR_LABELS"
	envSlots      = "CARILLON_EXECUTOR_SLOTS"
	envJournal    = "CARILLON_EXECUTOR_JOURNAL"
	envStrict     = "CARILLON_EXECUTOR_STRICT"
	envIdle       = "CARILLON_EXECUTOR_IDLE_AFTER"
	envTLS        = "CARILLON_EXECUTOR_TLS"
	envTLSCA      = "CARILLON_EXECUTOR_TLS_CA"
	envTLSCert    = "CARILLON_EXECUTOR_TLS_CERT"
	envTLSKey     = "CARILLON_EXECUTOR_TLS_KEY"
	envTLSServer  = "CARILLON_EXECUTOR_TLS_SERVER_NAME"
)

// fromEnv fills what is zero. It does not read a variable whose field is set.
func (c *Config) fromEnv(getenv func(string) string) error {
	fill := func(field *string, name string) {
		if *field == "" {
			*field = strings.TrimSpace(getenv(name))
		}
	}
	fill(&c.Name, envName)
	fill((*string)(&c.Token), envToken)
	if path := getenv(envTokenFile); c.Token == "" && path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", envTokenFile, err)
		}
		if c.Token = Secret(strings.TrimSpace(string(raw))); c.Token == "" {
			return fmt.Errorf("%s: %s is empty", envTokenFile, path)
		}
	}
	fill(&c.InstanceName, envInstance)
	fill(&c.Version, envVersion)
	fill(&c.JournalDir, envJournal)
	if len(c.Addresses) == 0 {
		c.Addresses = splitList(getenv(envAddresses))
	}
	if v := strings.TrimSpace(getenv(envSlots)); c.Slots == 0 && v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return fmt.Errorf("%s=%q: want a whole number from 1", envSlots, v)
		}
		c.Slots = n
	}
	if v := strings.TrimSpace(getenv(envGeneration)); c.Generation == 0 && v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%s=%q: want a whole number from 1", envGeneration, v)
		}
		c.Generation = n
	}
	if v := strings.TrimSpace(getenv(envIdle)); c.IdleAfter == 0 && v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			return fmt.Errorf("%s=%q: want a duration such as 10m", envIdle, v)
		}
		c.IdleAfter = d
	}
	if v := strings.TrimSpace(getenv(envStrict)); !c.Strict && v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%s=%q: want true or false", envStrict, v)
		}
		c.Strict = on
	}
	if v := getenv(envLabels); c.Labels == nil && v != "" {
		c.Labels = map[string]string{}
		for _, pair := range splitList(v) {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("%s: %q is not key=value", envLabels, pair)
			}
			c.Labels[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	if c.TLS == nil && c.Dial == nil {
		t := TLS{
			CAFile:     getenv(envTLSCA),
			CertFile:   getenv(envTLSCert),
			KeyFile:    getenv(envTLSKey),
			ServerName: getenv(envTLSServer),
		}
		on, err := parseSwitch(getenv(envTLS))
		if err != nil {
			return fmt.Errorf("%s: %w", envTLS, err)
		}
		if on || t != (TLS{}) {
			c.TLS = &t
		}
	}
	return nil
}

func splitList(v string) []string {
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func parseSwitch(v string) (bool, error) {
	if v == "" {
		return false, nil
	}
	return strconv.ParseBool(v)
}
