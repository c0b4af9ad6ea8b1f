// Before runs the tests of the programs that the guide on coming from other libraries shows, before,
// with Maven: on DynamoDB Local and on a Redis, which it starts, and ends.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/program"
)

func main() { program.Main("before", run) }

func run(ctx context.Context, _ []string) error {
	root, err := engines.Root()
	if err != nil {
		return err
	}
	local, err := engines.Start(ctx, engines.KindLocal, "")
	if err != nil {
		return err
	}
	defer local.Kill()
	redis, address, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.Kill()
	mvn := exec.CommandContext(ctx, "mvn", "--batch-mode", "--no-transfer-progress", "test",
		"-Dendpoint="+local.Endpoint, "-Dredis=redis://"+address)
	mvn.Dir = filepath.Join(root, "docs", "guides", "comingfrom", "before")
	mvn.Stdout, mvn.Stderr = os.Stdout, os.Stderr
	return mvn.Run()
}

// startRedis starts a Redis that keeps nothing on a free port of the loopback interface, and returns
// when it answers.
func startRedis(ctx context.Context) (*engines.Child, string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := l.Close(); err != nil {
		return nil, "", err
	}
	redis, err := engines.StartChild(exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"))
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if answers(ctx, address, redis.Pid) {
			return redis, address, nil
		}
		select {
		case <-redis.Exited():
			return nil, "", fmt.Errorf("redis-server ended; it wrote:\n%s", redis.Output())
		case <-ctx.Done():
			redis.Kill()
			return nil, "", errors.Join(fmt.Errorf("redis-server does not answer; it wrote:\n%s", redis.Output()), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// answers reports whether a Redis answers there, and is the process that was started: somebody else
// may have taken the port.
func answers(ctx context.Context, address string, pid int) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return false
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); name == "process_id" {
			return strings.TrimSpace(value) == fmt.Sprint(pid)
		}
	}
	return false
}
