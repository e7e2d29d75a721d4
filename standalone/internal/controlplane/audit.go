package controlplane

import (
	"fmt"

	"k8s.io/apiserver/pkg/server/options"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

const (
	auditMegabytes = 100 // size at which the audit log is rotated
	auditBackups   = 5   // rotated files that are kept
)

// defaultAuditPolicy logs metadata only, never request or response bodies, which could contain Secrets.
const defaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Audit configures the audit log.
type Audit struct {
	// Log is the path of the audit log. Empty: no audit log.
	Log string
	// Policy is a file with an audit.k8s.io/v1 Policy. Empty: the metadata of every request is logged.
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

// auditPolicy returns the policy file, and writes a default one if none is specified.
func (c *ControlPlane) auditPolicy() (string, error) {
	if c.options.Audit.Log == "" || c.options.Audit.Policy != "" {
		return c.options.Audit.Policy, nil
	}
	path := c.options.Dir.Path("audit-policy.yaml")
	if err := datadir.WriteFile(path, []byte(defaultAuditPolicy), 0o600); err != nil {
		return "", fmt.Errorf("write the default audit policy: %w", err)
	}
	return path, nil
}
