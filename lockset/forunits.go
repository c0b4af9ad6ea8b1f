package lockset

import "github.com/holdall/holdall/internal/unitlocks"

// forUnits has what package unitofwork needs of a client, and users do not.
type forUnits struct{ *Client }

// setForUnits is the same for a set.
type setForUnits struct{ *Set }

func init() {
	unitlocks.Of = func(client any) unitlocks.Client { return forUnits{client.(*Client)} }
}

// Set is for unitlocks.Client.
func (c forUnits) Set(set any) unitlocks.Set { return setForUnits{set.(*Set)} }
