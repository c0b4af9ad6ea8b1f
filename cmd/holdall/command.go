package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// commands are all there are. Each is one file.
var commands = []func(*app) *cobra.Command{
	initCommand,
	checkCommand,
	lsCommand,
	showCommand,
	freeCommand,
	outcomeCommand,
	recoverCommand,
	mendCommand,
	sweepCommand,
	webCommand,
	execCommand,
	timelineCommand,
	costCommand,
	dynamodbCommand,
	versionCommand,
}

// app is one run of the command: what it meets, and what the shared flags say.
type app struct {
	*environment
	connection
	table, units, hashKey string
	lease                 lease
	out                   output
	db                    *dynamodb.Client // nil before it is needed

	interrupt context.CancelCauseFunc // ends the context of the command

	logs  bool // what an operator does is logged to stderr
	begun bool // the arguments are right: an error from here on is none of usage
}

// run runs the command line and returns the code to exit with.
func run(ctx context.Context, args []string, env *environment) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &app{environment: env, interrupt: cancel}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil || codeSaysAll(err) {
		err = cmp.Or(a.out.failed, err) // half a list is none
	}
	switch cause := context.Cause(ctx); {
	case err != nil && !a.begun:
		err = wrongUsage(fmt.Errorf("%w; see holdall --help", err))
	case err != nil && errors.As(cause, new(interrupted)): // however deep the error has it
		err = cause
	}
	code, say := codeOf(err)
	if _, own := cmd.Annotations[passesOn]; own && (code == exitError || code == exitUsage) && say != nil {
		code = exitExec
	}
	if say != nil {
		fmt.Fprintf(env.stderr, "holdall: %s%s\n", plain.Error(say), a.hint(say))
	}
	return code
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdall",
		Short: "Operate holdall's tables",
		Long: "holdall operates the tables of the Go library of that name: locks over many keys and\n" +
			"units of work over many records, in DynamoDB.\n\n" +
			"Account and Region are found as the AWS CLI finds them: flags, environment, profile, role.\n\n" +
			"Exit codes:\n" + exitCodesText(),
		Example:       "  export HOLDALL_TABLE=locks HOLDALL_UNITS=units\n  holdall check",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begin(cmd) },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&a.profile, "profile", "", "`name` of an AWS profile")
	flags.StringVar(&a.region, "region", "", "AWS `Region`")
	flags.StringVar(&a.endpoint, "endpoint-url", "", "`URL` of another DynamoDB, such as DynamoDB Local")
	flags.StringVar(&a.table, "table", a.getenv("HOLDALL_TABLE"), "`name` of the lock table (HOLDALL_TABLE)")
	flags.StringVar(&a.units, "units", a.getenv("HOLDALL_UNITS"), "`name` of the unit table (HOLDALL_UNITS)")
	flags.StringVar(&a.hashKey, "hash-key", a.getenv("HOLDALL_HASH_KEY"), "`name` of the lock table's hash key, if it is not \"key\" (HOLDALL_HASH_KEY)")
	flags.Var(&a.lease, "lease", "`time` for which your processes leave a silent holder alone, if it is not 20s (HOLDALL_LEASE)")
	flags.StringVarP((*string)(&a.out.format), "output", "o", string(formatText), "text for people, or `json`")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{string(formatText), string(formatJSON)}, cobra.ShellCompDirectiveNoFileComp))
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	return root
}

// passesOn is the annotation of a command that passes signals on to another, and its code back: its own
// errors have a code that few others have. The context of any other command ends with the first signal,
// and the second ends the process.
const passesOn = "passes-on"

// begin is called once the arguments are right.
func (a *app) begin(cmd *cobra.Command) error {
	if err := a.out.open(a.stdout, a.getenv); err != nil {
		return err
	}
	a.begun = true
	if _, own := cmd.Annotations[passesOn]; !own {
		go func() {
			select {
			case s := <-a.signals:
				a.interrupt(interrupted{s})
				signal.Reset()
			case <-cmd.Context().Done():
			}
		}()
	}
	return nil
}

// lockConfig is how to lock, by the shared flags.
func (a *app) lockConfig() (lockset.Config, error) {
	if a.table == "" {
		return lockset.Config{}, wrongUsage(errors.New("which lock table? give --table, or set HOLDALL_TABLE"))
	}
	lease, err := a.lease.orFrom(a.getenv)
	if err != nil {
		return lockset.Config{}, wrongUsage(err)
	}
	cfg := lockset.Config{Table: a.table, HashKey: a.hashKey, Lease: lease, Owner: owner()}
	if a.logs {
		cfg.Logger = slog.New(slog.NewTextHandler(a.stderr, nil))
	}
	return cfg, nil
}

// lease is a flag whose zero value is the library's default, and which may stand in the
// environment.
type lease time.Duration

func (l *lease) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}

// Set is pflag's.
func (l *lease) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < locks.MinLease {
		err = fmt.Errorf("at least %v is needed", locks.MinLease)
	}
	*l = lease(d)
	return err
}

// Type is pflag's.
func (l *lease) Type() string { return "duration" }

func (l lease) orFrom(getenv func(string) string) (time.Duration, error) {
	if text := getenv("HOLDALL_LEASE"); l == 0 && text != "" {
		if err := l.Set(text); err != nil {
			return 0, fmt.Errorf("HOLDALL_LEASE is %q: %w", text, err)
		}
	}
	return time.Duration(l), nil
}

// owner names this process in rows: an operator is looked for by host and process.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s holdall[%d]", host, os.Getpid())
}

// connected is how to lock, and where. It connects once: a client that was told that this host's clock
// is wrong signs its next requests for the right time.
func (a *app) connected(ctx context.Context) (cfg lockset.Config, db *dynamodb.Client, err error) {
	if cfg, err = a.lockConfig(); err == nil && a.db == nil {
		a.db, err = connectAWS(ctx, a.connection)
	}
	return cfg, a.db, err
}

// unitsClient is a client of both tables, or of the lock table alone if no other is named.
// change may be nil.
func (a *app) unitsClient(ctx context.Context, change func(*unitofwork.Config)) (*unitofwork.Client, error) {
	locks, db, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	cfg := unitofwork.Config{Locks: locks, Table: a.units}
	if change != nil {
		change(&cfg)
	}
	return unitofwork.Open(db, cfg)
}

// needUnits says that a command is about the unit table.
func (a *app) needUnits() error {
	if a.units == "" {
		return wrongUsage(errors.New("which unit table? give --units, or set HOLDALL_UNITS"))
	}
	return nil
}
