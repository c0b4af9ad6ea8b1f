package memdynamo_test

import (
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
)

var (
	_ lockset.DynamoDB = (*memdynamo.DB)(nil)
	_ lockset.Tables   = (*memdynamo.DB)(nil)
)
