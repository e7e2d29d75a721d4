package explain

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// expiryNotice is how long before certificates expire they are reported, as the conditions of control planes do.
const expiryNotice = 30 * 24 * time.Hour

// expiring finds certificates of control plane Machines and CAs that expire soon, and that nothing replaces by itself.
func (v *view) expiring() []Cause {
	plane := v.controlPlane()
	if plane == nil || !isKubeadm(plane) || plane.GetDeletionTimestamp() != nil {
		return nil
	}
	list := v.expiringCAs(plane)
	if tree.Number(plane, "spec", "rolloutBefore", "certificatesExpiryDays") != 0 {
		return list // Machines are replaced in time.
	}
	for _, m := range v.machines {
		expiry := v.expiryOf(m)
		if expiry.IsZero() || !expiry.After(v.Now) || expiry.Sub(v.Now) > expiryNotice {
			continue
		}
		list = append(list, v.cause(CertificatesExpire, Upcoming, m, nil,
			"the certificates of its control plane components expire on "+expiry.UTC().Format(time.DateOnly)).
			do(fmt.Sprintf("Replace the Machines: `clusterctl rollout restart kubeadmcontrolplane/%s -n %s`", plane.GetName(), v.Cluster.Namespace),
				"To have that done in time, set spec.rolloutBefore.certificatesExpiryDays of the control plane"))
	}
	return list
}

// expiringCAs finds the CAs that the control plane's controller reports: it reads them, and users may not be allowed to.
func (v *view) expiringCAs(plane *unstructured.Unstructured) []Cause {
	c := tree.ReportedCondition(plane, controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition)
	if c == nil || c.Status != "True" {
		return nil
	}
	var list []Cause
	for line := range strings.Lines(c.Message) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "* "))
		if !strings.HasPrefix(line, controlplanev1.ExpiringCAMessage) {
			continue
		}
		list = append(list, v.cause(CertificatesExpire, Upcoming, plane, nil, strings.ToLower(line[:1])+line[1:]).
			do("Rotate it with a CertificateAuthorityRotation of the fleet provider: "+
				"all certificates of the cluster expire with it, and no rollout replaces it"))
	}
	return list
}

// expiryOf returns when the certificates of a control plane Machine expire; zero if that is unknown, or no longer matters.
func (v *view) expiryOf(m *unstructured.Unstructured) time.Time {
	expiry, err := time.Parse(time.RFC3339, tree.Text(m, "status", "certificatesExpiryDate"))
	if err != nil || !isControlPlane(m) || m.GetDeletionTimestamp() != nil {
		return time.Time{}
	}
	return expiry
}
