package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// expiryNotice is how long before certificates expire users are told so.
const expiryNotice = 30 * 24 * time.Hour

// expiryMessage says which CAs expire soon, and which Machines whose certificates do if none of them is going to be replaced for that. It
// names dates, so that it does not change every day; empty if nothing expires soon.
func (c *Controller) expiryMessage(s *scope, now time.Time) string {
	var lines []string
	for _, e := range c.credentials.Expiries(s.KCP.UID) {
		if verb := expiring(e.At, now); verb != "" {
			lines = append(lines, fmt.Sprintf("* %s%s %s", controlplanev1.ExpiringCAMessage, e.Secret, verb))
		}
	}
	if s.KCP.Spec.Rollout.Before.CertificatesExpiryDays != 0 {
		return strings.Join(lines, "\n")
	}
	machines := map[string][]string{}
	for _, m := range s.Machines {
		if m.DeletionTimestamp != nil || m.Status.CertificatesExpiryDate.IsZero() {
			continue
		}
		if verb := expiring(m.Status.CertificatesExpiryDate.Time, now); verb != "" {
			machines[verb] = append(machines[verb], m.Name)
		}
	}
	var certificates []string
	for verb, names := range machines {
		slices.Sort(names)
		certificates = append(certificates, fmt.Sprintf("* The certificate of Machine %s %s", strings.Join(names, ", "), verb))
	}
	slices.Sort(certificates)
	return strings.Join(append(lines, certificates...), "\n")
}

// expiring returns "expires on 2030-01-02" or "expired on 2030-01-02"; empty if there is more time than that of the notice.
func expiring(at, now time.Time) string {
	switch date := at.UTC().Format(time.DateOnly); {
	case now.Before(at.Add(-expiryNotice)):
		return ""
	case now.Before(at):
		return "expires on " + date
	default:
		return "expired on " + date
	}
}
