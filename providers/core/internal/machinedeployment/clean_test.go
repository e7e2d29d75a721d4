package machinedeployment

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHistory(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int32 // of a client of v1beta1
		want   int
	}{
		"Zero":     {reason: "no old MachineSet is kept", limit: 0, want: 0},
		"Some":     {reason: "so many are kept", limit: 3, want: 3},
		"Negative": {reason: "a negative number counts as zero", limit: -1, want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := machineDeployment(metav1.Time{})
			historyLimit(t, tc.limit)(md)
			if got, err := history(t.Context(), md); err != nil || got != tc.want {
				t.Errorf("%s: got %d, err = %v; want %d", tc.reason, got, err, tc.want)
			}
		})
	}
	if got, err := history(t.Context(), machineDeployment(metav1.Time{})); err != nil || got != defaultHistory {
		t.Errorf("without a limit: got %d, err = %v; want %d", got, err, defaultHistory)
	}
}
