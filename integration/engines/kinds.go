package engines

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Kind names an engine that tests can run against.
type Kind string

const (
	// KindLocal is DynamoDB Local, AWS's own stand-in for DynamoDB.
	KindLocal Kind = "dynamodb-local"
	// KindDynoxide is dynoxide, an independent engine over SQLite.
	KindDynoxide Kind = "dynoxide"
)

// The versions the suites are written against. What is known to differ between
// engines (integration/README.md) holds for these and for no others.
const (
	DynamoDBLocalVersion = "3.1.0"
	DynoxideVersion      = "1.2.1"
)

// String is the engine's name with its version, as messages show it.
func (k Kind) String() string {
	switch k {
	case KindLocal:
		return "DynamoDB Local " + DynamoDBLocalVersion
	case KindDynoxide:
		return "dynoxide " + DynoxideVersion
	}
	return string(k)
}

// Home is the folder that holds the installed engine. It lies under .engines/
// at the root of the repository and carries the version in its name, so that an
// older installation is never mistaken for this one.
func (k Kind) Home() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	switch k {
	case KindLocal:
		return filepath.Join(root, ".engines", "dynamodb-local-"+DynamoDBLocalVersion), nil
	case KindDynoxide:
		return filepath.Join(root, ".engines", "dynoxide-"+DynoxideVersion), nil
	}
	return "", fmt.Errorf("engines: no engine is called %q", string(k))
}

// NotInstalledError says that an engine is missing, and what to run. Tests fail
// with it: a suite that skips itself proves nothing and looks like one that passed.
type NotInstalledError struct {
	Kind    Kind
	Missing string
}

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("%s cannot be started, %s is missing; run: make engines", e.Kind, e.Missing)
}

// Root is the repository's root: the nearest folder, from the working directory
// upwards, that has the library's go.mod, and not that of another module inside the
// repository. The go command runs every test in its package's folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/holdall/holdall\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("engines: no go.mod of holdall's above the working directory")
		}
		dir = parent
	}
}

// command is the program and its arguments that serve an engine installed in
// home on a port.
func command(kind Kind, home string, port int, dbPath string) ([]string, error) {
	switch kind {
	case KindLocal:
		return localCommand(home, port, dbPath)
	case KindDynoxide:
		program := filepath.Join(home, "dynoxide")
		if _, err := os.Stat(program); err != nil {
			return nil, &NotInstalledError{Kind: KindDynoxide, Missing: ".engines/" + filepath.Base(home) + "/dynoxide"}
		}
		args := []string{program, "--host", "127.0.0.1", "--port", strconv.Itoa(port)}
		if dbPath != "" {
			args = append(args, "--db-path", dbPath)
		}
		return args, nil
	}
	return nil, fmt.Errorf("engines: no engine is called %q", string(kind))
}

func localCommand(home string, port int, dbPath string) ([]string, error) {
	if dbPath != "" {
		// Tried: killed with a database path it forgot its last acknowledged
		// transaction more often than not. A test built on that would blame the library.
		return nil, errors.New("engines: DynamoDB Local is run in memory only")
	}
	if _, err := os.Stat(filepath.Join(home, "DynamoDBLocal-"+DynamoDBLocalVersion+".jar")); err != nil {
		return nil, &NotInstalledError{Kind: KindLocal, Missing: ".engines/" + filepath.Base(home)}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, &NotInstalledError{Kind: KindLocal, Missing: "java"}
	}
	return append(LocalJava(java, home), "-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port)), nil
}

// LocalJava is the command that runs the DynamoDB Local installed in home;
// the server's own arguments follow it.
func LocalJava(java, home string) []string {
	return []string{
		java,
		// The suites are short and the machine is shared: a small heap, and neither
		// collector threads nor a second compiler beside the tests.
		"-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.library.path=" + home,
		"-cp", filepath.Join(home, "*"),
		"software.amazon.dynamodb.services.local.main.ServerRunner",
	}
}
