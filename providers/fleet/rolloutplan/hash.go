package rolloutplan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Planned is what a change does to a Cluster.
type Planned struct {
	UID      types.UID             `json:"uid"`
	Stage    string                `json:"stage"`
	Effect   fleetv1.RolloutEffect `json:"effect"`
	Machines int32                 `json:"machines"`
}

// Hash returns the hash of a plan, short enough to be read aloud: of the change, the class as it is, and what happens to each
// Cluster.
func Hash(change *fleetv1.RolloutChange, class *fleetv1.PlannedClass, planned []Planned) (string, error) {
	planned = slices.Clone(planned)
	slices.SortFunc(planned, func(a, b Planned) int { return cmp.Compare(a.UID, b.UID) })
	text, err := json.Marshal([]any{change, class, planned})
	if err != nil {
		return "", fmt.Errorf("encoding the plan: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}
