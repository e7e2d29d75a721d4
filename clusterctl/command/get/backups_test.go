package get

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestNoBackups: a Cluster without backups may have a misspelled name, so that its list is an error.
func TestNoBackups(t *testing.T) {
	scheme, err := management.Scheme()
	testenv.Must(t, err)
	m := &management.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Namespace: "ns"}
	for name, want := range map[string]string{"": "", "nosuch": "there are no backups of cluster nosuch in namespace ns"} {
		streams, _ := iostreams.Test()
		err := runBackups(t.Context(), &BackupsOptions{
			IO: streams, Clock: clock.RealClock{}, ClusterName: name, Output: "name",
			Connect: func(management.Kubeconfig) (*management.Cluster, error) { return m, nil },
		})
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("backups of %q: %v, want %q", name, err, want)
		}
	}
}
