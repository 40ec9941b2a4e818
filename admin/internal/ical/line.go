package ical

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// split takes a content line apart: NAME;PARAM=value;PARAM="value":text.
func split(line string) (name string, params map[string]string, text string, ok bool) {
	i := strings.IndexAny(line, ";:")
	if i <= 0 {
		return "", nil, "", false
	}
	name, params = strings.ToUpper(line[:i]), map[string]string{}
	for i < len(line) && line[i] == ';' {
		rest := line[i+1:]
		key, after, found := strings.Cut(rest, "=")
		if !found || strings.ContainsAny(key, ";:") {
			return "", nil, "", false
		}
		end := strings.IndexAny(after, ";:")
		v := after
		if strings.HasPrefix(after, `"`) {
			quote := strings.IndexByte(after[1:], '"')
			if quote < 0 {
				return "", nil, "", false
			}
			v, end = after[1:quote+1], quote+2
		} else if end >= 0 {
			v = after[:end]
		}
		if end < 0 {
			return "", nil, "", false
		}
		params[strings.ToUpper(key)] = v
		i = len(line) - len(after) + end
	}
	if i >= len(line) || line[i] != ':' {
		return "", nil, "", false
	}
	return name, params, line[i+1:], true
}

// unescape reads TEXT (RFC 5545, 3.3.11); a line break becomes a space.
func unescape(text string) string {
	return strings.TrimSpace(strings.NewReplacer(`\\`, `\`, `\;`, ";", `\,`, ",", `\n`, " ", `\N`, " ").Replace(text))
}

// maxDuration is more bytes than any duration within its bounds needs.
const maxDuration = 64

// duration reads P1D, PT8H30M, P1W: nominal days, and exact time.
func duration(text string) (days int, exact time.Duration, msg string) {
	wrong := fmt.Sprintf("%q is no duration such as P1D or PT8H", shorten(text))
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "+"), "P")
	if !ok || rest == "" || len(rest) > maxDuration {
		return 0, 0, wrong
	}
	units, number := map[byte]time.Duration{}, ""
	for i := range len(rest) {
		c := rest[i]
		switch {
		case c >= '0' && c <= '9':
			number += string(c)
			continue
		case c == 'T' && number == "" && len(units) == 0:
			units = map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}
			continue
		}
		n, err := strconv.Atoi(number)
		unit := units[c]
		switch {
		case err != nil || n > 100_000:
			return 0, 0, wrong
		case unit > 0:
			exact += time.Duration(n) * unit
		case len(units) == 0 && c == 'D':
			days += n
		case len(units) == 0 && c == 'W':
			days += 7 * n
		default:
			return 0, 0, wrong
		}
		number = ""
	}
	if number != "" || days == 0 && exact == 0 {
		return 0, 0, wrong
	}
	return days, exact, ""
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}
