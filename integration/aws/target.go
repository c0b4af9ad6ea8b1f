package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/wire"
)

// target is the DynamoDB that is asked.
type target struct {
	Kind        engines.Kind
	Endpoint    string
	Region      string
	Credentials aws.CredentialsProvider
	Caller      string // the account, and who asks; empty if it is none of AWS's

	stop  func()
	usage func() memdynamo.Usage // what it has counted itself, if it has
}

// find finds it, or starts it.
func find(ctx context.Context, o options) (target, error) {
	t := target{
		Kind: cmp.Or(o.Engine, engines.KindAWS), Endpoint: o.Endpoint, Region: cmp.Or(o.Region, "us-east-1"),
		Credentials: credentials.NewStaticCredentialsProvider("holdall", "holdall", ""), stop: func() {},
	}
	switch {
	case !o.elsewhere():
		return t.ofAWS(ctx)
	case o.Endpoint != "":
		t.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
		return t, nil
	case o.Engine == engines.KindEmbedded:
		return t.embedded()
	}
	server, err := engines.Start(ctx, o.Engine, "")
	if err != nil {
		return t, err
	}
	t.Endpoint, t.stop = server.Endpoint, server.Kill
	return t, nil
}

// ofAWS has the caller's credentials, as every tool of AWS finds them.
func (t target) ofAWS(ctx context.Context) (target, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(t.Region))
	if err != nil {
		return t, fmt.Errorf("AWS configuration: %w", err)
	}
	for service, at := range map[string]*string{"DynamoDB": dynamodb.NewFromConfig(cfg).Options().BaseEndpoint, "STS": sts.NewFromConfig(cfg).Options().BaseEndpoint} {
		if at != nil {
			return t, fmt.Errorf("the environment or the profile says that %s is at %s (AWS_ENDPOINT_URL, or endpoint_url), and this run would be on AWS itself: "+
				"unset that; or give ENDPOINT=URL to run there", service, *at)
		}
	}
	t.Credentials = cfg.Credentials
	endpoint, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, dynamodb.EndpointParameters{Region: &t.Region})
	if err != nil {
		return t, fmt.Errorf("the endpoint of Region %q: %w", t.Region, err)
	}
	t.Endpoint = endpoint.URI.String()
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return t, fmt.Errorf("whose credentials these are cannot be found out: %w", err)
	}
	t.Caller = fmt.Sprintf("%s, as %s", aws.ToString(who.Account), aws.ToString(who.Arn))
	return t, nil
}

// embedded serves the engine in this process.
func (t target) embedded() (target, error) {
	db := memdynamo.New(memdynamo.Config{})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return t, err
	}
	server := &http.Server{Handler: wire.Handler(db), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	t.Endpoint, t.usage = "http://"+l.Addr().String(), db.Usage
	t.stop = func() { _ = server.Close() }
	return t, nil
}

// admin is a client for the tables as a whole, which the suites' requests do not go through.
func (t target) admin() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: t.Region, BaseEndpoint: &t.Endpoint, Credentials: t.Credentials})
}
