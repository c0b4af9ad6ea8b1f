package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/holdall/holdall/integration/engines"
)

// The npm package that has dynoxide's program, and its integrity. It is the
// only one that was tried, so it is the only one that is fetched.
const (
	dynoxidePlatform  = "linux/amd64"
	dynoxidePackage   = "@dynoxide/linux-x64"
	dynoxideIntegrity = "sha512-sBHqlxJ9ANkLluFkYRfd5r8Y0ApFew4FhOrlhgRAgD4XzEoFOukEo1nuBTQ1+jTtofqwn4NWQ2k0Tn5mNTjgUg=="
)

func fetchDynoxide(ctx context.Context, _, dir string) error {
	if platform := runtime.GOOS + "/" + runtime.GOARCH; platform != dynoxidePlatform {
		return fmt.Errorf("dynoxide is fetched for %s only, this is %s: run the tests there, in a container for example", dynoxidePlatform, platform)
	}
	// npm compares what it fetched with the integrity its registry states.
	out, err := run(ctx, dir, "npm", "pack", "--json", "--silent", dynoxidePackage+"@"+engines.DynoxideVersion)
	if err != nil {
		return err
	}
	var packed []struct{ Filename string }
	if err := json.Unmarshal(out, &packed); err != nil {
		return fmt.Errorf("npm pack did not say which file it wrote: %w: %s", err, out)
	}
	if len(packed) != 1 {
		return fmt.Errorf("npm pack wrote %d files, not one: %s", len(packed), out)
	}
	// Base: some versions of npm print a scoped name with its slash.
	archive := filepath.Join(dir, filepath.Base(packed[0].Filename))
	if err := checkIntegrity(archive, dynoxideIntegrity); err != nil {
		return err
	}
	if err := unpack(archive, "package/dynoxide", filepath.Join(dir, "dynoxide")); err != nil {
		return err
	}
	return os.Remove(archive)
}

// checkIntegrity compares a file with the sha512 that this repository states, so
// that a registry cannot exchange the program the tests execute.
func checkIntegrity(file, want string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sum := sha512.Sum512(content)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("%s: integrity %s, not the %s stated here", filepath.Base(file), got, want)
	}
	return nil
}

// unpack writes one file of a .tgz as a program.
func unpack(archive, name, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has no %s", filepath.Base(archive), name)
		}
		if err != nil {
			return err
		}
		if header.Name != name {
			continue
		}
		program, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(program, r)
		return errors.Join(err, program.Close())
	}
}

func verifyDynoxide(ctx context.Context, dir string) error {
	out, err := run(ctx, dir, filepath.Join(dir, "dynoxide"), "--version")
	if err != nil {
		return err
	}
	if got, want := strings.TrimSpace(string(out)), "dynoxide "+engines.DynoxideVersion; got != want {
		return fmt.Errorf("--version says %q, not %q", got, want)
	}
	return nil
}
