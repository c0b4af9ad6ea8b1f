package adopting

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
)

// Straggler reports whether a change of a record was made by a program that knows nothing of holdall.
// It takes the two images of a stream's record (StreamViewType NEW_AND_OLD_IMAGES); one that is not
// there is empty. Every write of a unit leaves a higher token than it finds. So does a write with a
// Fence, but for a second one under the same lock, which is reported, too. Of a removal nothing can
// be told.
func Straggler(before, after map[string]types.AttributeValue) bool {
	if len(after) == 0 {
		return false
	}
	was, _ := fencing.Fence{}.Of(before)
	is, ok := fencing.Fence{}.Of(after)
	return !ok || is <= was
}
