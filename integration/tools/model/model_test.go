package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := engines.Root()
	require.NoError(t, err)
	return dir
}

func all(t *testing.T) []model {
	t.Helper()
	models, err := load(filepath.Join(root(t), "docs", "model"))
	require.NoError(t, err)
	return models
}

const example = `/* An example. */
/* property alone: nobody else is there */
/* pan: -DNOREDUCE -m5000 */
/* clause free: it is free | mutant: a | b ; c | finds: alone */
/* clause seen: it was seen | mutant: - | finds: nothing: it need not be */
/* clause any: it is any | mutant: - */
#ifdef WITHOUT_free
#ifndef WITHOUT_seen
#ifdef WITHOUT_any
`

func TestAModelIsRead(t *testing.T) {
	m, err := parse("example", example, example)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"alone": "nobody else is there"}, m.properties)
	require.Equal(t, []string{memory, "-DNOREDUCE", "-DSAFETY"}, m.compile)
	require.Equal(t, []string{depth, "-m5000"}, m.search)
	require.Equal(t, []clause{
		{"free", "it is free", []string{"a | b", "c"}, "alone"},
		{"seen", "it was seen", nil, "nothing: it need not be"},
		{"any", "it is any", nil, ""},
	}, m.clauses)
	require.False(t, m.clauses[0].redundant())
	require.True(t, m.clauses[1].redundant())

	cycles := strings.Replace(example, "-m5000", "-a", 1)
	m, err = parse("example", cycles, cycles)
	require.NoError(t, err)
	require.NotContains(t, m.compile, "-DSAFETY", "with it no cycle is looked for")
}

func TestAModelThatIsNotKept(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"/* An example. */", ""}:                       "does not begin with a comment",
		{"#ifdef WITHOUT_free", ""}:                     "clause free is declared, but WITHOUT_free is nowhere",
		{"#ifdef WITHOUT_free", "/* WITHOUT_free */"}:   "clause free is declared, but WITHOUT_free is nowhere",
		{"#ifdef WITHOUT_any", "#ifdef WITHOUT_more"}:   "any is declared, but",
		{"/* clause any: it is any | mutant: - */", ""}: "WITHOUT_any is used, but not declared",
		{"clause any", "clause seen"}:                   "declared twice",
		{"finds: alone", "finds: together"}:             `there is no property "together"`,
		{" | mutant: a | b ; c", ""}:                    "not of the form",
	} {
		text := strings.Replace(example, change[0], change[1], 1)
		_, err := parse("example", text, text)
		require.ErrorContains(t, err, want)
	}
}

const whole = `
(Spin Version 6.5.2 -- 6 December 2019)
	+ Partial Order Reduction

State-vector 132 byte, depth reached 106, errors: 0
  1102225 states, stored
  6395289 states, matched
  7497514 transitions (= stored+matched)
  298.961	total actual memory usage
`

const violated = `pan:1: assertion violated (alone|| !((holds[1]&&holds[2]))) (at depth 74)
pan: wrote hold.pml.trail

(Spin Version 6.5.2 -- 6 December 2019)
Warning: Search not completed
State-vector 132 byte, depth reached 74, errors: 1
      888 states, stored
     1000 transitions (= stored+matched)
`

func TestASearchIsJudged(t *testing.T) {
	m, err := parse("example", example, example)
	require.NoError(t, err)
	free, seen, unsure := &m.clauses[0], &m.clauses[1], &m.clauses[2]

	f := read(whole, nil)
	require.Equal(t, found{stored: 1102225, taken: 7497514, deepest: 106, megabytes: 298.961}, f)
	require.Equal(t, "no violation; 1,102,225 states, 7,497,514 transitions, depth 106, 299 MB", m.story(f))
	require.Empty(t, m.wrong(nil, f))
	require.Empty(t, m.wrong(seen, f))
	require.Equal(t, "NOTHING FOUND", m.wrong(free, f))
	require.Equal(t, "NOTHING FOUND", m.wrong(unsure, f))

	f = read(violated, nil)
	require.Equal(t, "not alone, after 888 states, by a trail of 74 steps", m.story(f))
	require.Contains(t, m.wrong(nil, f), "VIOLATION")
	require.Contains(t, m.wrong(seen, f), "VIOLATION")
	require.Empty(t, m.wrong(free, f))
	require.Empty(t, m.wrong(unsure, f))
	require.Empty(t, m.wrong(&clause{finds: "assertion holds[1]&&holds[2]"}, f))
	require.NotEmpty(t, m.wrong(&clause{finds: "assertion holds[1]&&holds[3]"}, f))

	f = read(strings.Replace(violated, "assertion violated (alone|| !((holds[1]&&holds[2])))", "invalid end state", 1), nil)
	require.Contains(t, m.wrong(free, f), "SOMETHING ELSE THAN alone: invalid end state")
	require.Empty(t, m.wrong(&clause{finds: invalidEnd}, f))
	require.NotEmpty(t, m.wrong(&clause{finds: cycle}, f))
}

// A search that did not look at everything proves nothing.
func TestASearchThatIsNoProof(t *testing.T) {
	m, err := parse("example", example, example)
	require.NoError(t, err)
	for name, f := range map[string]found{
		"too deep":    read("error: max search depth too small\n"+whole, nil),
		"too large":   read("pan: reached -DMEMLIM bound\n"+whole, nil),
		"interrupted": read("Interrupted\nWarning: Search not completed\n"+whole, nil),
		"killed":      read("", errors.New("signal: killed")),
		"too long":    read(whole, context.DeadlineExceeded),
		"silent":      read("", nil),
		"an error":    read(strings.Replace(whole, "errors: 0", "errors: 1", 1), nil),
	} {
		require.Contains(t, m.wrong(nil, f), "PROVES NOTHING", name)
		require.Contains(t, m.wrong(&m.clauses[0], f), "PROVES NOTHING", name)
		require.Contains(t, m.wrong(&m.clauses[1], f), "PROVES NOTHING", name)
	}
}

func TestSearchesAreChosen(t *testing.T) {
	m, err := parse("example", example, example)
	require.NoError(t, err)
	names := func(pattern string, whole bool) (names []string) {
		for _, task := range chosen([]model{m}, regexp.MustCompile(pattern), whole) {
			names = append(names, task.String())
		}
		return names
	}
	require.Equal(t, []string{"example", "example without free", "example without seen", "example without any"}, names("", false))
	require.Equal(t, []string{"example"}, names("", true))
	require.Equal(t, []string{"example without seen"}, names("seen", false))
}

// What a clause prevents was declared by hand: every search of all compares it.
func TestEveryClauseSaysWhatIsFoundWithoutIt(t *testing.T) {
	for _, m := range all(t) {
		require.NotEmpty(t, m.clauses, m.name)
		for _, c := range m.clauses {
			require.NotEmpty(t, c.finds, "%s: clause %s does not say what Spin finds without it", m.name, c.name)
		}
		for p := range m.properties {
			require.Regexp(t, `assert\([^;]*\b`+p+`\b`, m.text, "%s: nothing asserts %s", m.name, p)
		}
	}
}

// A clause names its mutants by their texts, which have to be there.
func TestTheGeneratedTablesAreOnThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(clausesPage)))
	require.NoError(t, err)
	want, err := generated(string(page), all(t))
	require.NoError(t, err)
	if want != string(page) { // both are long
		t.Fatalf("%s is not what the models and the mutants say: make docs", clausesPage)
	}
	_, err = generated(clausesEnd+clausesBegin, all(t))
	require.ErrorContains(t, err, "docs/model/clauses.md has no line")
}

func TestOneTableForEachModel(t *testing.T) {
	m, err := parse("example", example, example)
	require.NoError(t, err)
	text, err := tables([]model{m, {name: "bare"}}, map[string]string{"a | b": "x TestOne", "c": "y TestTwo"})
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(`## example

[example.pml](example.pml)

- 'alone': nobody else is there

| clause | without it | caught by |
|---|---|---|
| 'free': it is free | 'alone' | 'x TestOne', 'y TestTwo' |
| 'seen': it was seen | nothing: it need not be | - |
| 'any': it is any |  | - |

## bare

[bare.pml](bare.pml)

| clause | without it | caught by |
|---|---|---|

`, "'", "`"), text)
	_, err = tables([]model{m}, nil)
	require.ErrorContains(t, err, `there is no mutant "a | b"`)
}

var goName = regexp.MustCompile(`\b([a-z]+)\.((?:\w+\.)?\w+)((?:, [a-z]+\.(?:\w+\.)?\w+)*) \((\w+\.go)\)`)

// Comments of models name the functions that do what is modelled.
func TestWhatModelsNameExists(t *testing.T) {
	declared := map[string]bool{}
	for _, m := range all(t) {
		names := 0
		for _, comment := range blockComment.FindAllString(m.text, -1) {
			for _, found := range goName.FindAllStringSubmatch(comment, -1) {
				for name := range strings.SplitSeq(found[1]+"."+found[2]+found[3], ", ") {
					folder, what, _ := strings.Cut(name, ".")
					file := folder + "/" + found[4]
					for _, above := range []string{"internal/", "lockset/"} {
						if _, err := os.Stat(filepath.Join(root(t), above, folder)); err == nil {
							file = above + file
						}
					}
					if !declared[file] {
						declared[file] = true
						declarations(t, file, declared)
					}
					assert.True(t, declared[file+" "+what], "%s: there is no %s in %s", m.name, what, file)
					names++
				}
			}
		}
		require.NotZero(t, names, "%s names nothing of the code", m.name)
	}
}

// declarations notes what a file declares at its top.
func declarations(t *testing.T, file string, declared map[string]bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			declared[file+" "+receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declared[file+" "+s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						declared[file+" "+name.Name] = true
					}
				}
			}
		}
	}
}

// receiver is the type that a method belongs to, with a dot.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
