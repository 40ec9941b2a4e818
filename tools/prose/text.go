package main

import (
	"regexp"
	"strings"
)

var (
	person = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever|whom|who|whose)\b`)
	clause = regexp.MustCompile(`(?i)(?:^|[,;:(] ?|\b(?:and|or|but|of|to|for|in|on|by|with|from|until|that|than|as) )(what|who|whoever|whatever|those who|those that|those of|one that|ones that|that which)\b|\bof (?:which|whom)\b`)
	joint  = regexp.MustCompile(`\w[:;] \w`)
	code   = regexp.MustCompile("`[^`]*`|\\[[^\\]]*\\]\\([^)]*\\)|https?://\\S+")
	quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	rule   = regexp.MustCompile(`^[|:\- ]*$`)
	item   = regexp.MustCompile(`^([-*]|\d+\.)\s+`)
	order  = regexp.MustCompile(`^(go:|nolint|\+build|carillon:|line )`)
	end    = regexp.MustCompile(`[.!?]\s+[A-Z"(]`)
)

// figures are counted over sentences.
type figures struct {
	sentences, words int
	persons          int // persons that stand for a process: nobody, who, …
	clauses          int // clauses as subject or object: "what waits …"
	joints           int // sentences with a colon or semicolon in the middle
	long             int // sentences of more than 30 words
}

func (f figures) plus(o figures) figures {
	return figures{f.sentences + o.sentences, f.words + o.words, f.persons + o.persons, f.clauses + o.clauses, f.joints + o.joints, f.long + o.long}
}

// bad is how a file is ordered among others.
func (f figures) bad() float64 { return float64(f.persons+f.clauses) / float64(f.sentences) }

// badness is that of one sentence; from 3 on it is shown.
func (f figures) badness() float64 {
	return float64(3*f.persons+3*f.clauses+f.joints) + max(0, float64(f.words-22)/6)
}

// score counts one sentence. Only the length of a question counts.
func score(sentence string) figures {
	f := figures{sentences: 1, words: len(strings.Fields(sentence))}
	if f.words > 30 {
		f.long = 1
	}
	if strings.HasSuffix(sentence, "?") {
		return f
	}
	f.persons, f.clauses = len(person.FindAllString(sentence, -1)), len(clause.FindAllString(sentence, -1))
	if joint.MatchString(sentence) {
		f.joints = 1
	}
	return f
}

// paragraph is text that belongs together, and the line in which it begins.
type paragraph struct {
	line int
	text string
}

// sentences are those of four words and more, without code.
func (p paragraph) sentences() (out []string) {
	text := code.ReplaceAllString(p.text, "X")
	text = strings.NewReplacer("**", "", "e.g.", "eg", "i.e.", "ie").Replace(text)
	for text != "" {
		sentence, rest := text, ""
		if at := end.FindStringIndex(text); at != nil {
			sentence, rest = text[:at[0]+1], strings.TrimSpace(text[at[0]+1:])
		}
		if len(strings.Fields(sentence)) >= 4 {
			out = append(out, strings.TrimSpace(sentence))
		}
		text = rest
	}
	return out
}

// paragraphs are those of a document, or of the comments of a program. only: of these lines
// alone; nil: of all.
func paragraphs(text string, document bool, only map[int]bool) (out []paragraph) {
	next := commentLine()
	if document {
		next = documentLine()
	}
	var now paragraph
	flush := func() {
		if now.text != "" {
			out = append(out, now)
		}
		now = paragraph{}
	}
	for i, line := range strings.Split(text, "\n") {
		piece, alone := next(line)
		if piece == "" || alone || only != nil && !only[i+1] {
			flush()
		}
		if piece == "" || only != nil && !only[i+1] {
			continue
		}
		if now.text == "" {
			now = paragraph{i + 1, piece}
		} else {
			now.text += " " + piece
		}
	}
	flush()
	return out
}

// documentLine returns the text of each line of a document. alone: a paragraph begins with it.
func documentLine() func(line string) (piece string, alone bool) {
	fence := false
	return func(line string) (string, bool) {
		s := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(s, "```"):
			fence = !fence
			return "", false
		case fence || rule.MatchString(s) || strings.HasPrefix(s, "#") || strings.HasPrefix(s, "<") || strings.HasPrefix(s, "!["):
			return "", false
		case strings.HasPrefix(s, "|"):
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(s, "|"), "|") {
				if len(strings.Fields(cell)) > 5 {
					cells = append(cells, strings.TrimSpace(cell))
				}
			}
			return strings.Join(cells, ". "), true
		}
		mark := item.FindString(s)
		return s[len(mark):], mark != ""
	}
}

// commentLine returns the text of each line of a program that is a comment of its own.
func commentLine() func(line string) (piece string, alone bool) {
	raw := false // inside of a text between backquotes
	return func(line string) (string, bool) {
		s := strings.TrimSpace(line)
		body, comment := strings.CutPrefix(s, "//")
		odd := strings.Count(quoted.ReplaceAllString(line, ""), "`")%2 == 1
		switch {
		case raw:
			raw = strings.Count(line, "`")%2 == 0
		case !comment:
			raw = odd
		case !order.MatchString(strings.TrimSpace(body)) && !strings.HasPrefix(body, "\t") && !strings.HasPrefix(body, "    "):
			return strings.TrimSpace(body), false
		}
		return "", false
	}
}
