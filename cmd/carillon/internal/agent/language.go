package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// language is a kind of script.
type language struct {
	name     string
	programs []string // interpreters, the best first
	options  []string // before the script's path
	suffix   string   // of the script's file
}

var languages = []language{
	{name: "shell", programs: []string{"bash", "sh"}, suffix: ".sh"},
	{name: "python", programs: []string{"python3", "python"}, options: []string{"-u"}, suffix: ".py"},
	{name: "node", programs: []string{"node", "nodejs"}, suffix: ".js"},
	{name: "php", programs: []string{"php"}, suffix: ".php"},
	{name: "powershell", programs: []string{"pwsh"}, options: []string{"-NoProfile", "-NonInteractive", "-File"}, suffix: ".ps1"},
}

// Languages are the names of all kinds of scripts.
func Languages() []string {
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

// interpreter is a program that was found for a language.
type interpreter struct {
	language
	path    string
	version string // first line of what it says of itself
}

// versionTimeout bounds how long an interpreter may take to tell its version.
const versionTimeout = 10 * time.Second

// findInterpreters looks for the programs of the wanted languages in path. The
// languages without one are missing.
func findInterpreters(ctx context.Context, wanted []string, path string) (found []interpreter, missing []string, err error) {
	for _, name := range wanted {
		at := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
		if at < 0 {
			return nil, nil, fmt.Errorf("there are no scripts in %q; languages are %s", name, strings.Join(Languages(), ", "))
		}
		if slices.ContainsFunc(found, func(i interpreter) bool { return i.name == name }) {
			continue
		}
		program := lookUp(languages[at].programs, path)
		if program == "" {
			missing = append(missing, name)
			continue
		}
		found = append(found, interpreter{languages[at], program, versionOf(ctx, program, path)})
	}
	return found, missing, nil
}

// lookUp returns the first of the programs that is in path, or "".
func lookUp(programs []string, path string) string {
	for _, program := range programs {
		for _, dir := range filepath.SplitList(path) {
			full := filepath.Join(dir, program)
			if info, err := os.Stat(full); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return full
			}
		}
	}
	return ""
}

// versionOf asks a program what it is; "" when it does not say.
func versionOf(ctx context.Context, program, path string) string {
	if filepath.Base(program) == "sh" {
		return "" // POSIX knows no --version, and some would wait for input
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env = []string{"PATH=" + path, "LANG=C.UTF-8"}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// WindowsHint says of a script from an editor of Windows what its interpreter takes
// amiss, and the remedy. It is empty if there is nothing.
func WindowsHint(language, content string) string {
	body, bom := strings.CutPrefix(content, "\ufeff")
	switch {
	case language == "shell" && strings.Contains(body, "\r\n"):
		text := "the script's lines end as on Windows (CRLF), and the shell takes the carriage return as a part of the line's last word; save it with LF alone, for example with dos2unix"
		if bom {
			text += ", and without the byte order mark (BOM) at its beginning"
		}
		return text
	case bom && (language == "shell" || language == "php"):
		return "the script begins with a byte order mark (BOM), which " + language + " does not skip; save it as UTF-8 without BOM"
	}
	return ""
}
