package live

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Print has reports if the managers set them, in a width that fits where nobody says what fits.
func TestPrint(t *testing.T) {
	reported := object("Cluster", cluster.Name, "Provisioned", "")
	long := strings.Repeat("waiting ", 6) + "for machines"
	if err := unstructured.SetNestedSlice(reported.Object, []any{
		map[string]any{"type": "Available", "status": "False", "reason": "NotAvailable", "message": long},
	}, "status", "v1beta2", "conditions"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason  string
		cluster *unstructured.Unstructured
		want    []string
	}{
		{
			reason: "reports", cluster: reported,
			want: []string{
				"NAME           REPLICAS  AVAILABLE  READY  UP TO DATE  STATUS  REASON        SINCE",
				"Cluster ns/c1                                          False   NotAvailable",
				"            " + long,
				"",
			},
		},
		{
			reason: "older managers set none", cluster: object("Cluster", cluster.Name, "Provisioned", "Waiting"),
			want: []string{"NAME        READY  SEVERITY  REASON   SINCE  MESSAGE", "Cluster/c1  False            Waiting", ""},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			options := tree.Options{Reports: true}
			if err := Print(streams, time.Time{}, cluster, tree.NewObjects(tc.cluster), options, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Split(buffers.Out.String(), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
