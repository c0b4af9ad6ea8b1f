package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

type initOptions struct {
	print       string
	records     []string
	operator    bool
	account     string
	unprotected bool
}

func initCommand(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the tables, or print them for Terraform, CloudFormation or IAM",
		Long: "init makes the lock table and the unit table where they are missing, waits until they can\n" +
			"be used, and turns on TTL, deletion protection and, for the unit table, point-in-time\n" +
			"recovery. It says what it did, and may be run again.\n\n" +
			"With --print it makes nothing, asks nothing, and prints the tables, with a policy of the least\n" +
			"permissions for a process that locks and uses units; iam is the policy alone. The\n" +
			"CloudFormation passes cfn-lint. The Terraform is parsed and formatted by HashiCorp's own\n" +
			"library; neither terraform and its provider nor AWS has been tried with what is printed.\n\n" +
			"Without --units there is no unit table: then no unit can have an ID, or be larger than a\n" +
			"transaction.",
		Example: "  holdall init --table locks --units units\n" +
			"  holdall init --table locks --units units --records accounts --print terraform > holdall.tf",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.print != "" {
				return a.printTables(o)
			}
			return a.makeTables(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	kinds := slices.Sorted(maps.Keys(printers))
	flags.StringVar(&o.print, "print", "", "print instead: `terraform`, cloudformation or iam")
	flags.StringSliceVar(&o.records, "records", nil, "with --print: `names` of your tables that units write, for the policy")
	flags.BoolVar(&o.operator, "operator", false, "with --print: a policy for whoever runs this command, not for your processes")
	flags.StringVar(&o.account, "account", "", "with --print iam: `number` of the account, for ARNs; any without it")
	flags.BoolVar(&o.unprotected, "unprotected", false, "neither deletion protection nor recovery: for tests and demos")
	_ = cmd.RegisterFlagCompletionFunc("print", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) printTables(o initOptions) error {
	cfg, err := a.lockConfig()
	if err != nil {
		return err
	}
	print, ok := printers[o.print]
	if !ok {
		return wrongUsage(fmt.Errorf("--print is %q: %s are known", o.print, strings.Join(slices.Sorted(maps.Keys(printers)), ", ")))
	}
	t, err := newTables(cfg.Table, cmp.Or(cfg.HashKey, "key"), a.units, o.records, o.operator, a.region, o.account)
	if err != nil {
		return wrongUsage(err)
	}
	if len(o.records) == 0 {
		fmt.Fprintln(a.stderr, "holdall: no --records: this policy lets units write no table of yours")
	}
	return print(a.stdout, t)
}

type made struct {
	Table string `json:"table"`
	Made  bool   `json:"made"` // it was not there
	TTL   string `json:"ttl"`  // the attribute

	// What became of its protection: "on", "was on", "not asked for", or why it is off.
	DeletionProtection string `json:"deletionProtection"`
	PointInTime        string `json:"pointInTimeRecovery,omitempty"` // of the unit table
}

func (a *app) makeTables(ctx context.Context, o initOptions) error {
	cfg, db, err := a.connected(ctx)
	if err != nil {
		return err
	}
	var all []made
	one := func(table string, recovery bool, create func() error) error {
		_, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		there := err == nil
		switch {
		case errors.As(err, new(*types.ResourceNotFoundException)):
			a.out.line("%s: making it, and waiting until it can be used", table)
		case err != nil:
			return fmt.Errorf("table %q: %w", table, err)
		}
		if err := create(); err != nil {
			return err
		}
		m := made{Table: table, Made: !there, TTL: "expiresAt"}
		if err := protect(ctx, db, &m, o.unprotected, recovery); err != nil {
			return err
		}
		all = append(all, m)
		a.out.line("%s: %s", table, m)
		return nil
	}
	if err := one(cfg.Table, false, func() error { return lockset.CreateTable(ctx, db, cfg) }); err != nil {
		return err
	}
	if a.units != "" {
		units := unitofwork.Config{Table: a.units}
		if err := one(a.units, true, func() error { return unitofwork.CreateTable(ctx, db, units) }); err != nil {
			return err
		}
	}
	return a.out.json(struct {
		Tables []made `json:"tables"`
	}{all})
}

// String says it for people.
func (m made) String() string {
	text := "was there"
	if m.Made {
		text = "made"
	}
	text += "; TTL on for " + m.TTL + "; deletion protection " + m.DeletionProtection
	if m.PointInTime != "" {
		text += "; point-in-time recovery " + m.PointInTime
	}
	return text
}

const (
	isOn     = "on"
	wasOn    = "was on"
	notAsked = "not asked for"
	unknown  = "unknown here"
)

// protect keeps a table from being deleted, and the unit table's past. An engine for tests
// may know neither: that is said, and is no error.
func protect(ctx context.Context, db *dynamodb.Client, m *made, unprotected, recovery bool) (err error) {
	m.DeletionProtection = notAsked
	if recovery {
		m.PointInTime = notAsked
	}
	if unprotected {
		return nil
	}
	if m.DeletionProtection, err = protectFromDeletion(ctx, db, m.Table); err != nil {
		return fmt.Errorf("table %q: deletion protection: %w", m.Table, err)
	}
	if recovery {
		if m.PointInTime, err = keepPast(ctx, db, m.Table); err != nil {
			return fmt.Errorf("table %q: point-in-time recovery: %w", m.Table, err)
		}
	}
	return nil
}

func protectFromDeletion(ctx context.Context, db *dynamodb.Client, table string) (string, error) {
	is, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return "", err
	}
	if aws.ToBool(is.Table.DeletionProtectionEnabled) {
		return wasOn, nil
	}
	_, err = db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &table, DeletionProtectionEnabled: aws.Bool(true)})
	return turnedOn(err)
}

func keepPast(ctx context.Context, db *dynamodb.Client, table string) (string, error) {
	is, err := db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &table})
	if err != nil {
		return turnedOn(err)
	}
	if pointInTime(is.ContinuousBackupsDescription) == types.PointInTimeRecoveryStatusEnabled {
		return wasOn, nil
	}
	_, err = db.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        &table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	return turnedOn(err)
}

// turnedOn says what came of turning something on. An engine that is not DynamoDB may not have such an operation.
func turnedOn(err error) (string, error) {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException" {
		return unknown, nil
	}
	return isOn, err
}

// pointInTime is the state of recovery; empty if it is not told.
func pointInTime(is *types.ContinuousBackupsDescription) types.PointInTimeRecoveryStatus {
	if is == nil || is.PointInTimeRecoveryDescription == nil {
		return ""
	}
	return is.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus
}
