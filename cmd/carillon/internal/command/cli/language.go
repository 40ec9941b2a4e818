package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// LanguageFlag adds --lang.
func (a *App) LanguageFlag(cmd *cobra.Command, lang *string) {
	ChoiceFlag(cmd, lang, "lang", a.language(), languages, "en or zh (default: by LANG)")
}

var languages = []string{"en", "zh"}

// language is what the environment asks for, in the order of POSIX.
func (a *App) language() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := a.getenv(name); v != "" {
			if strings.HasPrefix(strings.ToLower(v), "zh") {
				return "zh"
			}
			return "en"
		}
	}
	return "en"
}
