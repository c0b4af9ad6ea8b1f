package lockset

import (
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// HTTPClient returns an HTTP client with settings that suit lock traffic, for
// the caller's own *dynamodb.Client:
//
//	db := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.HTTPClient = lockset.HTTPClient() })
//
// Lock traffic is many small requests at a time, whose first attempt should
// find an open connection: the SDK keeps ten idle connections per host, this
// keeps connections for a hundred requests at a time. A connection that is not
// made within two seconds is given up; an attempt's own timeout comes from
// Config.AttemptTimeout.
func HTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 2 * time.Second }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 100, 100
			t.TLSHandshakeTimeout = 2 * time.Second
		})
}
