package places

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An expression of DynamoDB stands in one string, or in several with constants
// between them. For the operators it is one text, in which a letter that nobody
// uses stands for each part that is no string; what is in the part, they change
// where it is declared.
const firstPart = '\uE000'

// expression changes what a string, or a sum of strings, says to DynamoDB.
func (f *finder) expression(e ast.Expr) {
	if sum, ok := f.parent().(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		return // the whole sum is changed
	}
	if !f.is(e, types.IsString) {
		return
	}
	var text strings.Builder
	var parts []string
	var add func(ast.Expr)
	add = func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				add(e.X)
				add(e.Y)
				return
			}
		case *ast.BasicLit:
			if said, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				text.WriteString(said)
				return
			}
		}
		text.WriteRune(firstPart + rune(len(parts)))
		parts = append(parts, f.of(e))
	}
	add(e)
	if !isExpression(text.String()) {
		return
	}
	for _, v := range variants(text.String()) {
		f.change(v.operator, e, sumOf(v.text, parts))
	}
}

// sumOf is the Go code for a text with parts.
func sumOf(text string, parts []string) string {
	var terms []string
	said := ""
	for _, r := range text {
		if r < firstPart || int(r-firstPart) >= len(parts) {
			said += string(r)
			continue
		}
		if said != "" {
			terms = append(terms, strconv.Quote(said))
		}
		terms, said = append(terms, parts[r-firstPart]), ""
	}
	if said != "" || len(terms) == 0 {
		terms = append(terms, strconv.Quote(said))
	}
	return strings.Join(terms, " + ")
}

var (
	placeholder = regexp.MustCompile(`(^|[ (,])[#:][A-Za-z]|attribute_(not_)?exists\(`)
	joined      = regexp.MustCompile(`[)\x{E000}-\x{E0FF}] (AND|OR) `)
	sql         = regexp.MustCompile(`\b(SELECT|INSERT|WHERE|CREATE|VALUES)\b`)
)

func isExpression(text string) bool {
	return (placeholder.MatchString(text) || joined.MatchString(text)) && !sql.MatchString(text)
}

// variant is an expression that says something else.
type variant struct{ operator, text string }

var (
	comparison = regexp.MustCompile(` (<=|>=|<>|<|>|=) `)
	exists     = regexp.MustCompile(`attribute_(not_)?exists\(`)
	conjoins   = regexp.MustCompile(` (AND|OR) `)
	negates    = regexp.MustCompile(`\bNOT `)
	clauses    = regexp.MustCompile(`\b(SET|REMOVE|ADD|DELETE) `)
	otherwise  = map[string]string{
		"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=",
		"attribute_exists(": "attribute_not_exists(", "attribute_not_exists(": "attribute_exists(", "AND": "OR", "OR": "AND",
	}
)

// variants returns each variant of an expression once.
func variants(text string) (all []variant) {
	seen := map[string]bool{text: true, "": true}
	propose := func(operator string, from, to int, with string) {
		changed := text[:from] + with + text[to:]
		if !seen[changed] {
			seen[changed] = true
			all = append(all, variant{operator, changed})
		}
	}
	for _, at := range comparison.FindAllStringSubmatchIndex(text, -1) {
		sign := text[at[2]:at[3]]
		switch {
		case sign != "=" && sign != "<>":
			propose("str-boundary", at[2], at[3], otherwise[sign])
		case !assigns(text[:at[0]]):
			propose("str-equal", at[2], at[3], otherwise[sign])
		}
	}
	for _, at := range exists.FindAllStringIndex(text, -1) {
		propose("str-exists", at[0], at[1], otherwise[text[at[0]:at[1]]])
	}
	for _, at := range negates.FindAllStringIndex(text, -1) {
		propose("str-drop-not", at[0], at[1], "")
	}
	for _, at := range conjoins.FindAllStringSubmatchIndex(text, -1) {
		propose("str-and-or", at[2], at[3], otherwise[text[at[2]:at[3]]])
		if begin := clauseBefore(text, at[0]); begin < at[0] {
			propose("str-drop-clause", begin, at[1], "")
		}
		if end := clauseAfter(text, at[1]); end > at[1] {
			propose("str-drop-clause", at[0], end, "")
		}
	}
	dropActions(text, propose)
	return all
}

// assigns reports whether what follows this beginning is in a SET clause.
func assigns(beginning string) bool {
	found := clauses.FindAllStringSubmatch(beginning, -1)
	return len(found) > 0 && found[len(found)-1][1] == "SET"
}

// clauseBefore is where the clause that ends here begins: at what joins it to
// others, or at the parenthesis around it.
func clauseBefore(text string, end int) int {
	depth := 0
	for i := end - 1; i >= 0; i-- {
		switch {
		case text[i] == ')':
			depth++
		case text[i] == '(' && depth == 0:
			return i + 1
		case text[i] == '(':
			depth--
		case depth == 0 && (strings.HasSuffix(text[:i+1], " AND ") || strings.HasSuffix(text[:i+1], " OR ")):
			return i + 1
		}
	}
	return 0
}

func clauseAfter(text string, begin int) int {
	depth := 0
	for i := begin; i < len(text); i++ {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')' && depth == 0:
			return i
		case text[i] == ')':
			depth--
		case depth == 0 && (strings.HasPrefix(text[i:], " AND ") || strings.HasPrefix(text[i:], " OR ")):
			return i
		}
	}
	return len(text)
}

// dropActions drops one action of an update expression, and the word before it if
// it is the only one.
func dropActions(text string, propose func(operator string, from, to int, with string)) {
	found := clauses.FindAllStringIndex(text, -1)
	for n, at := range found {
		end := len(text)
		if n+1 < len(found) {
			end = found[n+1][0]
		}
		cuts := slices.Concat([]int{at[1] - 2}, commas(text, at[1], end), []int{end})
		if len(cuts) == 2 {
			propose("str-drop-action", at[0], end, "")
			continue
		}
		for i := range len(cuts) - 1 {
			if i == 0 {
				propose("str-drop-action", at[1], cuts[1]+2, "")
			} else {
				last := cuts[i+1]
				if last == end && end < len(text) {
					last-- // the space before the next word
				}
				propose("str-drop-action", cuts[i], last, "")
			}
		}
	}
}

// commas are where one action ends and another follows.
func commas(text string, from, to int) (all []int) {
	depth := 0
	for i := from; i < to; i++ {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:to], ", "):
			all = append(all, i)
		}
	}
	return all
}
