package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/engines"
)

// options are what the caller says.
type options struct {
	Region   string
	Prefix   string
	Endpoint string       // elsewhere than at AWS
	Engine   engines.Kind // which serves the endpoint; without one it is started
	Consent  string       // the prefix, where nobody can be asked

	Requests   int64   // at most
	Units      float64 // capacity units at most, as estimated
	WritePrice float64 // US dollars for a million write request units
	ReadPrice  float64
	Timeout    time.Duration

	Only string // of the suites; all if empty
}

// What a run is expected to need, as the embedded engine counts it (make aws PREFIX=try-
// ENGINE=embedded), and what it may need at most.
const (
	expectedRequests = 20_000
	expectedWrites   = 175_000
	expectedReads    = 110_000
	requestLimit     = 3 * expectedRequests
	unitLimit        = 3 * (expectedWrites + expectedReads)
)

// The list prices of on-demand requests in us-east-1, from 1 November 2024, in US dollars for
// a million units. Other Regions cost more, and prices change.
const (
	writePrice = 0.625
	readPrice  = 0.125
)

// marker follows the caller's prefix in the name of each table: nothing else is touched,
// whatever else begins with that prefix.
const marker = "holdall-aws-"

func (o options) namespace() string { return o.Prefix + marker }

// elsewhere says that nothing is sent to AWS.
func (o options) elsewhere() bool { return o.Endpoint != "" || o.Engine != "" }

var prefixes = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,50}$`)

const needs = `make aws runs holdall's suites on your AWS account. Give a Region, and a prefix for its tables:

  make aws REGION=eu-west-1 PREFIX=try-              asks before it begins; credentials are those of the default chain
  make aws REGION=eu-west-1 PREFIX=try- CONSENT=try- does not ask
  make aws-policy REGION=eu-west-1 PREFIX=try-       the permissions that it needs
  make aws-clean REGION=eu-west-1 PREFIX=try-        deletes what a run that was killed has left
  make aws PREFIX=try- ENGINE=dynamodb-local         on an engine that it starts: embedded, dynoxide or dynamodb-local
  make aws PREFIX=try- ENDPOINT=http://localhost:8000 ENGINE=dynamodb-local
                                                     on one that is there

docs/aws.md says what it finds out, and what it costs.
`

// parse reads the command line. What is wrong with it is written to w.
func parse(args []string, w io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("aws", flag.ContinueOnError)
	fs.SetOutput(w)
	fs.Usage = func() { fmt.Fprint(w, needs, "\n"); fs.PrintDefaults() }
	fs.StringVar(&o.Region, "region", "", "AWS `Region`")
	fs.StringVar(&o.Prefix, "prefix", "", "begins the names of all tables")
	fs.StringVar(&o.Endpoint, "endpoint", "", "`URL` of a DynamoDB that is not AWS's")
	fs.StringVar((*string)(&o.Engine), "engine", "", "`name` of an engine: "+string(engines.KindEmbedded)+", "+string(engines.KindDynoxide)+" or "+string(engines.KindLocal))
	fs.StringVar(&o.Consent, "consent", "", "the prefix: begin without asking")
	fs.Int64Var(&o.Requests, "requests", requestLimit, "send no more requests than that")
	fs.Float64Var(&o.Units, "units", unitLimit, "use no more capacity units than that, as estimated")
	fs.Float64Var(&o.WritePrice, "write-price", writePrice, "US dollars for a million write request units in your Region")
	fs.Float64Var(&o.ReadPrice, "read-price", readPrice, "the same for read request units")
	fs.DurationVar(&o.Timeout, "timeout", time.Hour, "end after that time")
	fs.StringVar(&o.Only, "only", "", "run only this suite: "+suiteNames())
	if err := fs.Parse(args); err != nil {
		return o, err // flag has said it
	}
	if err := o.check(); err != nil {
		fmt.Fprintf(w, "%v\n\n%s", err, needs)
		return o, err
	}
	return o, nil
}

func (o options) check() error {
	switch {
	case o.Prefix == "":
		return errors.New("PREFIX is missing")
	case !prefixes.MatchString(o.Prefix):
		return fmt.Errorf("PREFIX=%q: it has 3 to 50 letters, digits, and characters of \"-_.\"", o.Prefix)
	case strings.Contains(o.Prefix, marker):
		return fmt.Errorf("PREFIX=%q: %q follows it in the names of tables, and cannot be in it: they would be taken for those of another run", o.Prefix, marker)
	case o.Region == "" && !o.elsewhere():
		return errors.New("REGION is missing")
	case o.Requests <= 0 || o.Units <= 0 || o.Timeout <= 0 || o.WritePrice < 0 || o.ReadPrice < 0:
		return errors.New("-requests, -units and -timeout are more than 0, and no price is less")
	case o.Engine != "" && o.Engine != engines.KindEmbedded && o.Engine != engines.KindDynoxide && o.Engine != engines.KindLocal:
		return fmt.Errorf("ENGINE=%q is none of %s, %s, %s", o.Engine, engines.KindEmbedded, engines.KindDynoxide, engines.KindLocal)
	case len(choose(o.Only)) == 0:
		return fmt.Errorf("-only=%q is none of %s", o.Only, suiteNames())
	}
	return nil
}
