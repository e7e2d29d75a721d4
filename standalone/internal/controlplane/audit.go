package controlplane

import (
	"fmt"

	"k8s.io/apiserver/pkg/server/options"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

const (
	auditMegabytes = 100 // size at which the audit log is put aside
	auditBackups   = 5   // files put aside that are kept
)

// defaultAuditPolicy records who asked for what, and never what is in a request or an answer: that could be a Secret.
const defaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Audit says what is recorded of requests.
type Audit struct {
	// Log is the file that requests are recorded in. Empty: none are.
	Log string
	// Policy is a file with an audit.k8s.io/v1 Policy. Empty: the metadata of every request is recorded.
	Policy string
}

// apply sets the API server's options. Policy is not empty.
func (a Audit) apply(o *options.AuditOptions) {
	if a.Log == "" {
		return
	}
	o.PolicyFile = a.Policy
	o.LogOptions.Path = a.Log
	o.LogOptions.MaxSize, o.LogOptions.MaxBackups = auditMegabytes, auditBackups
}

// auditPolicy is the file with the policy, which is written if the user named none.
func (c *ControlPlane) auditPolicy() (string, error) {
	if c.options.Audit.Log == "" || c.options.Audit.Policy != "" {
		return c.options.Audit.Policy, nil
	}
	path := c.options.Dir.Path("audit-policy.yaml")
	if err := datadir.WriteFile(path, []byte(defaultAuditPolicy), 0o600); err != nil {
		return "", fmt.Errorf("writing the default audit policy: %w", err)
	}
	return path, nil
}
