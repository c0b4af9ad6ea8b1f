package switched

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/tools/mutants/internal/places"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

// odd has what is hard to copy, or to switch. It prints what it comes to.
const odd = `package main

import (
	"errors"
	"fmt"
	"time"
)

const (
	isFree = "#a = :a" // a comment
	isMine, isOld = "#b < :b",
		"#c < :c"
	both = isFree + " AND " + isMine
)

const (
	zero = iota
	limit int64 = 40
	two   = iota
)

var (
	wait time.Duration = 3 * time.Second
	twice, thrice = func() int { return 2 }(), 3
)

type box[T any] struct{ all []T }

func (b *box[T]) add(_ string, some ...T) { b.all = append(b.all, some...) }

func (box[T]) fixed(int) (n int) {
	n, err := 3, errors.New("no")
	defer func() { n += len(err.Error()) }()
	return n
}

func sum[K comparable, V int | int64](of map[K]V, _ ...string) (total V) {
	for _, v := range of {
		total += v
	}
	return
}

func labels() (n int) {
outer:
	for i := range 10 {
		switch {
		case i > 2:
			break outer
		}
		n += i
	}
	return n
}

func recovers() (said string) {
	defer func() { said = fmt.Sprint(recover()) }()
	panic("on purpose")
}

func init() { later = 1 + 1 }

var later int

func main() {
	b := &box[int]{}
	b.add("", 1, 2)
	c := make(chan int, 1)
	c <- 5
	close(c)
	fmt.Println(b.all, b.fixed(1), sum(map[string]int64{"a": 1, "b": limit}, "x"), labels(), recovers(), <-c)
	fmt.Println(isFree, isMine, isOld, both, zero, limit, two, wait, twice, thrice, later)
}
`

// lab is a folder with a program, which it compiles and runs.
type lab struct {
	t    *testing.T
	root string
}

func (l lab) write(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.root, filepath.FromSlash(name))
	require.NoError(l.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(l.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// build builds the program with some texts instead of its own.
func (l lab) build(binary string, texts map[string]string) {
	l.t.Helper()
	replace := map[string]string{}
	for name, text := range texts {
		replace[filepath.Join(l.root, name)] = l.write(binary+"/"+name+".txt", text)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(l.t, err)
	overlay := l.write(binary+".json", string(list))
	build := exec.CommandContext(l.t.Context(), "go", "build", "-overlay", overlay, "-o", filepath.Join(l.root, binary+".out"), "./odd")
	build.Dir = l.root
	output, err := build.CombinedOutput()
	require.NoError(l.t, err, string(output))
}

// run ends what does not end by itself.
func (l lab) run(binary string, awake int) string {
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	run := exec.CommandContext(ctx, filepath.Join(l.root, binary+".out"))
	run.Env = append(os.Environ(), Variable+"="+strconv.Itoa(awake))
	output, err := run.Output()
	return fmt.Sprint(string(output), err)
}

// A mutant that is awake in the program that has them all does what a program does
// that is compiled with it alone; while all sleep, the program is what it was.
func TestAMutantIsTheProgramWithTheChange(t *testing.T) {
	l := lab{t, t.TempDir()}
	l.write("go.mod", "module odd\n\ngo 1.26\n")
	l.write("odd/odd.go", odd)
	tr, err := tree.Load(context.Background(), l.root, []string{"odd"}, Imports...)
	require.NoError(t, err)
	p := tr.Package("odd")
	var mutants []Mutant
	for _, c := range places.Find(tr.Fset, p.Files[0].Name, odd, p.Files[0].AST, p.Info) {
		more := append(slices.Clone(mutants), Mutant{len(mutants) + 1, c})
		if texts, err := Join(tr, p, more); err == nil && tr.Compile("odd", texts) == nil {
			mutants = more
		}
	}
	require.Greater(t, len(mutants), 50)
	joined, err := Join(tr, p, mutants)
	require.NoError(t, err)
	l.build("joined", joined)
	l.build("alone", nil)
	require.Equal(t, l.run("alone", 0), l.run("joined", 0))

	for i := 0; i < len(mutants); i += 6 { // each build takes a while
		m := mutants[i]
		l.build("alone", map[string]string{m.File: m.Of(odd)})
		require.Equal(t, l.run("alone", 0), l.run("joined", m.Number), "%s: %s → %s", m.Operator, m.Old, m.New)
	}

	different := map[string]bool{} // each value of the package can be changed
	for _, m := range mutants {
		if m.Line < 35 {
			different[l.run("joined", m.Number)] = true
		}
	}
	require.Greater(t, len(different), 15)
}

// Neither a constant that has to be one nor what recovers can be switched.
func TestWhatCannotBeSwitched(t *testing.T) {
	l := lab{t, t.TempDir()}
	l.write("go.mod", "module odd\n\ngo 1.26\n")
	text := "package odd\n\nconst size = 3\n\nvar row [size]int\n\nfunc f() { println(recover() == nil) }\n"
	l.write("odd/odd.go", text)
	tr, err := tree.Load(context.Background(), l.root, []string{"odd"}, Imports...)
	require.NoError(t, err)
	p := tr.Package("odd")
	all := places.Find(tr.Fset, p.Files[0].Name, text, p.Files[0].AST, p.Info)
	texts, err := Join(tr, p, []Mutant{{1, all[0]}})
	require.NoError(t, err)
	require.ErrorContains(t, tr.Compile("odd", texts), "size")
	_, err = Join(tr, p, []Mutant{{1, all[len(all)-1]}})
	require.ErrorContains(t, err, "odd/odd.go: f recovers")
}
