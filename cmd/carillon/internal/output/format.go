package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/internal/document"
)

// Format is what -o takes.
type Format string

// The formats.
const (
	Table Format = "table"
	Wide  Format = "wide" // a table with all columns
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name" // one name or id per line, fit for another command
)

// Formats lists them for help and completion.
var Formats = []string{string(Table), string(Wide), string(JSON), string(YAML), string(Name)}

// ParseFormat checks the value of -o.
func ParseFormat(text string) (Format, error) {
	if !slices.Contains(Formats, text) {
		return "", fmt.Errorf("output format %q is none of %s", text, strings.Join(Formats, ", "))
	}
	return Format(text), nil
}

// Printer writes in one format.
type Printer struct {
	Out    io.Writer
	Format Format
	// Color: states are coloured.
	Color bool
	// Width of the terminal in columns; 0 = no limit.
	Width int
}

// WriteJSON writes v indented, keeping the order of raw messages.
func (p *Printer) writeJSON(v any) error {
	raw, err := marshal(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("indent JSON: %w", err)
	}
	out.WriteByte('\n')
	_, err = p.Out.Write(out.Bytes())
	return err
}

// marshal is json.Marshal that leaves <, > and & alone.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return out.Bytes(), nil
}

// writeYAML writes v with the order of its JSON form.
func (p *Printer) writeYAML(v any) error {
	raw, err := marshal(v)
	if err != nil {
		return err
	}
	return document.WriteYAML(p.Out, raw)
}
