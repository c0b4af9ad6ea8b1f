package holdalltest_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/internal/memdynamo"
)

// The page names what the engine has, and no more; and every fault.
func TestThePage(t *testing.T) {
	text, err := os.ReadFile("../docs/testing.md")
	require.NoError(t, err)
	page := string(text)
	_, table, _ := strings.Cut(page, "| operation | |")
	var named, has []string
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			named = append(named, name[1])
		}
	}
	client, engine := reflect.TypeFor[*dynamodb.Client](), reflect.TypeFor[*memdynamo.DB]()
	for i := range engine.NumMethod() {
		name := engine.Method(i).Name
		if method, is := client.MethodByName(name); is && method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() {
			has = append(has, name)
		}
	}
	require.ElementsMatch(t, has, named)
	source, err := os.ReadFile("fault.go")
	require.NoError(t, err)
	doc, _, _ := strings.Cut(string(source), "type Fault string")
	for _, fault := range holdalltest.Faults() {
		require.Contains(t, page, fmt.Sprintf("%q", fault))
		require.Contains(t, doc, fmt.Sprintf("%q:", fault))
	}
}
