package holdalltest

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
)

var inBubble = regexp.MustCompile(`^goroutine \d+ \[.*(synctest bubble \d+)\]`)

// ownBubble names the bubble of this goroutine, as stacks do; it is empty if they do not.
func ownBubble() string {
	text := make([]byte, 1<<10)
	found := inBubble.FindSubmatch(text[:runtime.Stack(text, false)])
	if found == nil {
		return ""
	}
	return string(found[1])
}

// ours are in the stacks of goroutines that are this package's own.
var ours = []string{"internal/synctest.Run(", "testing.testingSynctestTest(", "synctest.testingSynctestTest(", "holdalltest.watch("}

// left are the stacks of the goroutines of a bubble, but for our own: of the program under test.
func left(bubble string) string {
	text := make([]byte, 4<<20)
	text = text[:runtime.Stack(text, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		found := inBubble.FindStringSubmatch(stack)
		isOurs := func(s string) bool { return strings.Contains(stack, s) }
		if len(found) > 1 && found[1] == bubble && !slices.ContainsFunc(ours, isOurs) {
			stacks = append(stacks, stack)
		}
	}
	return strings.Join(stacks, "\n\n")
}
