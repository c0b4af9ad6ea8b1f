package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdall/holdall/integration/engines"
)

// fetchLocal has Maven copy DynamoDB Local and all it needs (48 MB) into dir.
func fetchLocal(ctx context.Context, root, dir string) error {
	_, err := run(ctx, dir, "mvn",
		"-B", "-q",
		"--strict-checksums", // Otherwise Maven only warns about a file that arrived damaged.
		"-f", filepath.Join(root, "integration", "engines", "pom.xml"),
		"dependency:copy-dependencies", "-DoutputDirectory="+dir)
	return err
}

func verifyLocal(ctx context.Context, dir string) error {
	args := append(engines.LocalJava("java", dir), "-version")
	out, err := run(ctx, dir, args[0], args[1:]...)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(out)); got != engines.DynamoDBLocalVersion {
		return fmt.Errorf("-version says %q, not %q", got, engines.DynamoDBLocalVersion)
	}
	return nil
}
