package lockrow

import (
	"strings"
	"sync"
	"unicode"
)

// placeholders are what the expressions of a write name, and those themselves. Requests share
// them: nobody is to change them, not even after the answer.
type placeholders struct {
	condition, update *string
	names             map[string]string
	values            []string // each once
}

// spelling is what placeholders depend on. Expressions are constants, or made of constants
// and a small number, so a process has few.
type spelling struct {
	hashKey, condition, update string
}

// mostKept bounds what is kept, whatever becomes of the expressions.
const mostKept = 1024

var kept = struct {
	sync.Mutex
	by map[spelling]placeholders
}{by: map[spelling]placeholders{}}

// placeholdersOf looks for the placeholders of expressions once: every request has some.
func placeholdersOf(hashKey, condition, update string) placeholders {
	of := spelling{hashKey, condition, update}
	kept.Lock()
	defer kept.Unlock()
	p, known := kept.by[of]
	if known {
		return p
	}
	p = of.placeholders()
	if len(kept.by) < mostKept {
		kept.by[of] = p
	}
	return p
}

func (s spelling) placeholders() placeholders {
	p := placeholders{condition: &s.condition, update: &s.update, names: map[string]string{}}
	seen := map[string]bool{}
	for _, word := range words(s.condition + " " + s.update) {
		switch {
		case seen[word]:
		case word == "#key":
			p.names[word] = s.hashKey
		case word[0] == '#':
			p.names[word] = word[1:]
		case word[0] == ':':
			p.values = append(p.values, word)
		}
		seen[word] = true
	}
	return p
}

// words are the words of an expression, as often as they are there: placeholders begin with
// their mark, and all of ours go on in letters.
func words(expression string) []string {
	return strings.FieldsFunc(expression, func(r rune) bool {
		return !unicode.IsLetter(r) && r != '#' && r != ':'
	})
}
