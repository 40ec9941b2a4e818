package output

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Column is one column of a table of T.
type Column[T any] struct {
	Title string
	Value func(T) string
	// Wide columns appear with -o wide only.
	Wide bool
	// Drop says how early the column gives way on a narrow terminal: the
	// highest goes first, 0 never goes.
	Drop int
	// Right aligns numbers.
	Right bool
}

// View says how to show a T in all formats.
type View[T any] struct {
	Columns []Column[T]
	// Name is what other commands take for it.
	Name func(T) string
}

// List writes many documents. JSON and YAML have the API's shape, {items: […]}.
func List[T any](p *Printer, v View[T], docs []apiclient.Doc[T]) error {
	switch p.Format {
	case JSON, YAML:
		list := struct {
			Items []apiclient.Doc[T] `json:"items"`
		}{docs}
		if p.Format == JSON {
			return p.writeJSON(list)
		}
		return p.writeYAML(list)
	case Name:
		for _, d := range docs {
			if _, err := fmt.Fprintln(p.Out, Clean(v.Name(d.Value))); err != nil {
				return err
			}
		}
		return nil
	}
	values := make([]T, len(docs))
	for i, d := range docs {
		values[i] = d.Value
	}
	return Rows(p, v.Columns, values)
}

// One writes one document; in table form as a table of one row.
func One[T any](p *Printer, v View[T], doc apiclient.Doc[T]) error {
	switch p.Format {
	case JSON:
		return p.writeJSON(doc)
	case YAML:
		return p.writeYAML(doc)
	default:
		return List(p, v, []apiclient.Doc[T]{doc})
	}
}

// Machine reports whether the format is for programs, and then writes doc.
func Machine[T any](p *Printer, doc apiclient.Doc[T]) (done bool, err error) {
	switch p.Format {
	case JSON:
		return true, p.writeJSON(doc)
	case YAML:
		return true, p.writeYAML(doc)
	default:
		return false, nil
	}
}

// Rows writes a table, whatever the format.
func Rows[T any](p *Printer, columns []Column[T], values []T) error {
	columns = shown(columns, p.Format == Wide)
	cells := make([][]string, len(values))
	for i, value := range values {
		cells[i] = make([]string, len(columns))
		for j, c := range columns {
			cells[i][j] = Clean(c.Value(value))
			if cells[i][j] == "" {
				cells[i][j] = "-"
			}
		}
	}
	if p.Format != Wide {
		columns, cells = fit(columns, cells, p.Width)
	}
	return p.render(titles(columns), rights(columns), cells)
}

// separator is what stands between two columns.
const separator = 3

// shown leaves out the columns of -o wide.
func shown[T any](columns []Column[T], wide bool) []Column[T] {
	var out []Column[T]
	for _, c := range columns {
		if wide || !c.Wide {
			out = append(out, c)
		}
	}
	return out
}

// fit drops columns until the table is at most width wide, or only those are
// left that never go.
func fit[T any](columns []Column[T], cells [][]string, width int) ([]Column[T], [][]string) {
	for width > 0 && tableWidth(titles(columns), cells) > width {
		drop, at := 0, -1
		for i, c := range columns {
			if c.Drop > drop {
				drop, at = c.Drop, i
			}
		}
		if at < 0 {
			break
		}
		columns = append(columns[:at:at], columns[at+1:]...)
		for i := range cells {
			cells[i] = append(cells[i][:at:at], cells[i][at+1:]...)
		}
	}
	return columns, cells
}

func tableWidth(titles []string, cells [][]string) int {
	total := 0
	for i, t := range titles {
		widest := text.StringWidth(t)
		for _, row := range cells {
			widest = max(widest, text.StringWidth(row[i]))
		}
		total += widest
	}
	return total + separator*max(len(titles)-1, 0)
}

func titles[T any](columns []Column[T]) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.Title
	}
	return out
}

func rights[T any](columns []Column[T]) []table.ColumnConfig {
	var out []table.ColumnConfig
	for i, c := range columns {
		if c.Right {
			out = append(out, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	return out
}

func (p *Printer) render(titles []string, configs []table.ColumnConfig, cells [][]string) error {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", separator)
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	w.SetColumnConfigs(configs)
	w.AppendHeader(row(titles))
	for _, r := range cells {
		if p.Color {
			for i := range r {
				r[i] = colored(r[i])
			}
		}
		w.AppendRow(row(r))
	}
	var out strings.Builder
	for line := range strings.Lines(w.Render() + "\n") {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := p.Out.Write([]byte(out.String()))
	return err
}

func row(cells []string) table.Row {
	out := make(table.Row, len(cells))
	for i, c := range cells {
		out[i] = c
	}
	return out
}

// Clean makes foreign text harmless in one line of a terminal: line breaks
// become spaces, other control characters and those that turn the reading
// direction become �.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case harmful(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// CleanLines is Clean for text of several lines, such as stacks: line breaks
// and tabs stay.
func CleanLines(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case harmful(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func harmful(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
