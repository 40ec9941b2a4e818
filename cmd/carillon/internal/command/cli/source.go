package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Source says where documents come from.
type Source struct {
	Files  []string
	values string
}

// Flags are those of commands that read documents of any kind.
func (f *Source) Flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.Files, "file", "f", nil, "file with documents, or folder with such files (.yaml, .yml, .json); - is standard input")
	f.ValuesFlag(cmd)
}

// ValuesFlag is the flag of the file with values.
func (f *Source) ValuesFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.values, "values", "", "file with the values of ${{ name }} in the documents")
}

// Read reads all documents and puts values into them. The error has the mistakes of all files.
// Documents without a kind are of the kind whose lists are at path; empty: of no kind.
func (f *Source) Read(ctx context.Context, a *App, s *Session, path string) (out []Placed, err error) {
	if len(f.Files) == 0 {
		return nil, Usagef("name a file or a folder with -f (- is standard input)")
	}
	places := document.Places{Getenv: os.LookupEnv, Advice: "add it to the file of --values, or use env:NAME or file:PATH"}
	if places.Named, err = f.readValues(a); err != nil {
		return nil, err
	}
	kinds, err := s.ListKinds(ctx, apiclient.ListKindsParams{})
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, name := range f.Files {
		files, err := document.Files(name)
		if err != nil {
			return nil, Usagef("%w", err)
		}
		for _, file := range files {
			objects, err := a.Documents(file)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			if places.Dir = filepath.Dir(file); file == "-" {
				places.Dir = ""
			}
			for _, object := range objects {
				one := Placed{file: file, Value: object}
				bad, kept := places.Fill(object, literal(kinds.Value.Items, one.TextOf("kind"), path))
				for _, m := range kept {
					a.Say("warning: %s: %v", output.Clean(one.At(m.Path)), m.Err)
				}
				for _, m := range bad {
					wrong = append(wrong, fmt.Errorf("%s: %w", one.At(m.Path), m.Err))
				}
				out = append(out, one)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, Usagef("%w", errors.Join(wrong...))
	}
	for _, m := range places.Unused() {
		a.Say("warning: %s:%d: no document uses the value %q", output.Clean(f.values), m.Line, m.Name)
	}
	return out, nil
}

// readValues reads the file of --values. nil: there is none.
func (f *Source) readValues(a *App) (*document.Value, error) {
	if f.values == "" {
		return nil, nil
	}
	objects, err := a.Documents(f.values)
	if err == nil && len(objects) != 1 {
		err = Usagef("%s: has %s, want one with a value for each name", f.values, spelling.Count(len(objects), "object", ""))
	}
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}

// literal are the paths of texts of a kind's documents in which ${{ }} is not the place of a value.
func literal(kinds []apiclient.DocumentKind, name, path string) []string {
	for _, k := range kinds {
		if k.Name == name || name == "" && k.Path == path {
			return k.Literal
		}
	}
	return nil
}

// Placed is a document of a file.
type Placed struct {
	file string
	*document.Value
}

// At is the place of a field, such as "shop.yaml:14 Job nightly: spec.schedule.cron". Without a
// path it is the place of the document, such as "shop.yaml:10 Job nightly".
func (p *Placed) At(path string) string {
	file := p.file
	if file == "-" {
		file = "standard input"
	}
	text := fmt.Sprintf("%s:%d", file, p.line(path))
	for _, name := range []string{"kind", "name"} {
		if word := p.TextOf(name); word != "" {
			text += " " + word
		}
	}
	if path != "" {
		text += ": " + path
	}
	return text
}

// line is the line of a field by its path, or of the last part of it that is there.
func (p *Placed) line(path string) int { return cmp.Or(p.LineOf(path), p.Line) }

// TextOf is the value of a field at the top; empty: it is no text.
func (p *Placed) TextOf(name string) string {
	if v := p.Field(name); v != nil && v.IsScalar() {
		return strings.TrimSpace(v.Text)
	}
	return ""
}

// maxFound bounds the value that a mistake repeats, in bytes.
const maxFound = 60

// Named is an error of the server with the places in the files, in the order of the files. find
// is the document of a location in the request, its number, and the path in it; nil: none.
func Named(err error, find func(location string) (n int, of *Placed, path string)) error {
	p, is := errors.AsType[*apiclient.Problem](err)
	if !is {
		return err
	}
	type said struct {
		item           apiclient.ProblemItem
		document, line int
	}
	list := make([]said, len(p.Errors))
	for i, item := range p.Errors {
		list[i].item = item
		if n, of, path := find(item.Location); of != nil {
			list[i] = said{item, n, of.line(path)}
			list[i].item.Location = of.At(path)
			var value string
			if json.Unmarshal(item.Value, &value) == nil && value != "" && len(value) <= maxFound && !strings.Contains(item.Message, value) && item.Position == nil {
				list[i].item.Message += ": " + strconv.Quote(value)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b said) int { return cmp.Or(cmp.Compare(a.document, b.document), cmp.Compare(a.line, b.line)) })
	out := *p
	out.Errors = nil
	for _, one := range list {
		out.Errors = append(out.Errors, one.item)
	}
	if len(out.Errors) == 1 && strings.Contains(out.Detail, p.Errors[0].Message) {
		out.Detail = out.Errors[0].Location + ": " + out.Errors[0].Message
	}
	return &out
}
