package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/stretchr/testify/require"
)

// printed is what init prints: it needs neither a network nor credentials.
func printed(t *testing.T, kind string, args ...string) string {
	t.Helper()
	r := runWith(t, nil, append([]string{"init", "--print", kind}, args...)...)
	require.Equal(t, exitDone, r.code, r)
	return r.stdout
}

var printedFor = map[string][]string{
	"both":     {"--table", "locks", "--units", "units", "--records", "accounts"},
	"names":    {"--table", "my.locks-1", "--units", "my_units", "--hash-key", "yes", "--records", "9lives,a.b,a_b"},
	"locks":    {"--table", "locks"},
	"operator": {"--table", "locks", "--units", "units", "--operator"},
}

func TestPrintedTerraformIsHCLAsItIsFormatted(t *testing.T) {
	for name, args := range printedFor {
		t.Run(name, func(t *testing.T) {
			text := printed(t, "terraform", args...)
			file, wrong := hclsyntax.ParseConfig([]byte(text), "printed.tf", hcl.InitialPos)
			require.False(t, wrong.HasErrors(), wrong)
			require.Equal(t, string(hclwrite.Format([]byte(text))), text)

			labels := map[string]bool{}
			for _, block := range file.Body.(*hclsyntax.Body).Blocks {
				label := block.Type + "." + strings.Join(block.Labels, ".")
				require.False(t, labels[label], "%s twice", label)
				require.True(t, hclsyntax.ValidIdentifier(block.Labels[1]), label)
				labels[label] = true
			}
			references := 0
			hclsyntax.VisitAll(file.Body.(*hclsyntax.Body), func(node hclsyntax.Node) hcl.Diagnostics { // what is referred to is there
				reference, is := node.(*hclsyntax.ScopeTraversalExpr)
				if !is {
					return nil
				}
				path := []string{reference.Traversal.RootName()}
				for _, step := range reference.Traversal[1:] {
					path = append(path, step.(hcl.TraverseAttr).Name)
				}
				where := "resource." + strings.Join(path[:2], ".")
				if path[0] == "data" {
					where = strings.Join(path[:3], ".")
				}
				require.True(t, labels[where], "%v refers to %s", path, where)
				references++
				return nil
			})
			require.GreaterOrEqual(t, references, 2)
		})
	}
}

// The rest of a table is in docs/templates.md.
func TestPrintedTablesHaveTheirNames(t *testing.T) {
	require.Regexp(t, `(?s)name += "my.locks-1".*hash_key += "yes".*name += "my_units"`, printed(t, "terraform", printedFor["names"]...))
}

// The bare policy and both templates allow the same, on the same tables.
func TestPrintedPoliciesAllowTheSame(t *testing.T) {
	for name, args := range printedFor {
		t.Run(name, func(t *testing.T) {
			var policy struct {
				Version   string
				Statement []struct {
					Sid, Effect      string
					Action, Resource []string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(printed(t, "iam", append(args, "--region", "eu-west-1", "--account", "123456789012")...)), &policy))
			require.Equal(t, "2012-10-17", policy.Version)
			terraform, cloudformation := printed(t, "terraform", args...), printed(t, "cloudformation", args...)
			for _, s := range policy.Statement {
				require.Equal(t, "Allow", s.Effect)
				require.Contains(t, terraform, "actions = [\n      \""+strings.Join(s.Action, "\",\n      \"")+"\",\n    ]")
				require.Contains(t, cloudformation, "- Sid: "+s.Sid+"\n            Effect: Allow\n            Action:\n              - "+
					strings.Join(s.Action, "\n              - ")+"\n            Resource:\n")
				for _, r := range s.Resource {
					require.Regexp(t, `^arn:aws:dynamodb:eu-west-1:123456789012:table/[A-Za-z0-9_.-]+$`, r)
				}
			}
			require.Equal(t, len(policy.Statement), strings.Count(terraform, "statement {"))
			require.Equal(t, len(policy.Statement), strings.Count(cloudformation, "- Sid:"))
		})
	}
}

// Each template is what the command prints that stands above it.
func TestTheTemplatesAreWhatInitPrints(t *testing.T) {
	page, err := os.ReadFile("../../docs/templates.md")
	require.NoError(t, err)
	shown := 0
	for _, part := range strings.Split(string(page), "\n```\nholdall init ")[1:] {
		line, rest, _ := strings.Cut(part, "\n```\n")
		_, fence, _ := strings.Cut(rest, "```")
		_, text, _ := strings.Cut(fence, "\n")
		text, _, found := strings.Cut(text, "```\n")
		require.True(t, found)
		r := runWith(t, nil, append([]string{"init"}, strings.Fields(line)...)...)
		require.Equal(t, ran{0, text, ""}, r, "docs/templates.md has to show what is printed by: holdall init %s", line)
		shown++
	}
	require.Equal(t, 2, shown)
}
