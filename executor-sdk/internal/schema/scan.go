package schema

import (
	"encoding/json"
	"iter"
)

// The functions of this file take JSON apart that json.Valid accepted before.
// They check nothing and allocate nothing but unescaped keys.

// typeOf names the JSON type of a value by its first byte.
func typeOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i.
func skipValue(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
		depth := 0
		for {
			switch raw[i] {
			case '"':
				i = skipString(raw, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	}
	for i < len(raw) {
		switch raw[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return i
		}
		i++
	}
	return i
}

func skipString(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// items splits an array.
func items(raw []byte) [][]byte {
	var out [][]byte
	for i := skipSpace(raw, 1); raw[i] != ']'; {
		end := skipValue(raw, i)
		out = append(out, raw[i:end])
		if i = skipSpace(raw, end); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return out
}

// members yields the keys and values of an object in their order, repeated
// keys included.
func members(raw []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := skipSpace(raw, 1); raw[i] != '}'; {
			keyEnd := skipString(raw, i)
			key := unquote(raw[i:keyEnd])
			start := skipSpace(raw, skipSpace(raw, keyEnd)+1)
			end := skipValue(raw, start)
			if !yield(key, raw[start:end]) {
				return
			}
			if i = skipSpace(raw, end); raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

func unquote(raw []byte) string {
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			var text string
			// The error is impossible: the value was found valid before.
			_ = json.Unmarshal(raw, &text)
			return text
		}
	}
	return string(raw[1 : len(raw)-1])
}
