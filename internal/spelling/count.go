package spelling

import (
	"fmt"
	"strings"
)

// Count is a number with the word for it: one is the word for 1, and many the word for all
// others, as in Count(n, "document joins", "documents join"). An empty many is one with an s, or
// with -ies and -es where English spells it so.
func Count[N int | int32 | int64](n N, one, many string) string {
	return fmt.Sprintf("%d %s", n, Word(n, one, many))
}

// Word is the word of Count without the number.
func Word[N int | int32 | int64](n N, one, many string) string {
	switch {
	case n == 1:
		return one
	case many != "":
		return many
	}
	for _, end := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(one, end) {
			return one + "es"
		}
	}
	if before, is := strings.CutSuffix(one, "y"); is && before != "" && !strings.ContainsAny(before[len(before)-1:], "aeiou") {
		return before + "ies"
	}
	return one + "s"
}
