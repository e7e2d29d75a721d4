package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestCertificates(t *testing.T) {
	const key = clusterv1.MachineCertificatesExpiryDateAnnotation
	at := metav1.Time{Time: now}
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		config  string
		want    metav1.Time
		failed  bool
	}{
		"Worker":  {"workers have no control plane certificates", machine(annotated(key, "2026-01-02T03:04:05Z")), "", metav1.Time{}, false},
		"Machine": {"the annotation of the Machine takes precedence", machine(object.ControlPlane, annotated(key, "2026-01-02T03:04:05Z")), "2030-01-02T03:04:05Z", at, false},
		"Config":  {"otherwise the annotation of the bootstrap config counts", machine(object.ControlPlane), "2026-01-02T03:04:05Z", at, false},
		"None":    {"without annotation, the date is removed", machine(object.ControlPlane, func(m *clusterv1.Machine) { m.Status.CertificatesExpiryDate = at }), "", metav1.Time{}, false},
		"Invalid": {"an invalid time is an error", machine(object.ControlPlane, annotated(key, "soon")), "", metav1.Time{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bootstrap := config(nil)
			if tc.config != "" {
				bootstrap.SetAnnotations(map[string]string{key: tc.config})
			}
			_, err := newWorld(t, bootstrap).certificates(t.Context(), &scope{machine: tc.machine, cluster: build.Cluster()})
			if (err != nil) != tc.failed {
				t.Errorf("%s: err = %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, tc.machine.Status.CertificatesExpiryDate); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
