package manager

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// check validates a flag. wrong returns the problem, or "" if there is none.
type check struct {
	flag  string
	wrong func() string
}

// validate returns an error for the first invalid flag.
func (o *options) validate(c Component) error {
	for _, check := range o.checks() {
		if wrong := check.wrong(); wrong != "" {
			return fmt.Errorf("invalid --%s: %s", check.flag, wrong)
		}
	}
	if errs := logsapi.Validate(o.logging, nil, nil); len(errs) > 0 {
		return fmt.Errorf("invalid logging flags: %w", errs.ToAggregate())
	}
	if c.Validate == nil {
		return nil
	}
	return c.Validate()
}

func (o *options) checks() []check {
	d := o.leaderElection
	return []check{
		{"namespace", func() string {
			if o.watchNamespace == "" {
				return ""
			}
			return strings.Join(content.IsDNS1123Label(o.watchNamespace), "; ")
		}},
		{"watch-filter", func() string { return strings.Join(content.IsLabelValue(o.watchFilter), "; ") }},
		{"skip-crd-migration-phases", func() string { return message(o.skipMigration.Validate()) }},
		{"sync-period", func() string { return unless(o.syncPeriod > 0, "%s must be positive", o.syncPeriod) }},
		{"kubeconfig", func() string { return readable(o.kubeconfig) }},
		{"kube-api-burst", func() string {
			return unless(o.burst > 0 || o.qps < 0, "%d must be positive, unless --kube-api-qps is negative", o.burst)
		}},
		{"leader-elect-renew-deadline", func() string {
			return unless(d.RenewDeadline < d.Lease, "%s must be shorter than --leader-elect-lease-duration (%s)", d.RenewDeadline, d.Lease)
		}},
		{"leader-elect-retry-period", func() string {
			// Leader election waits for up to 1.2 periods.
			return unless(d.RetryPeriod > 0 && d.RetryPeriod*6/5 < d.RenewDeadline,
				"%s must be positive and well below --leader-elect-renew-deadline (%s)", d.RetryPeriod, d.RenewDeadline)
		}},
		{"webhook-port", func() string {
			return unless(o.webhookPort >= 0 && o.webhookPort <= 65535, "%d is not a port", o.webhookPort)
		}},
		{"webhook-cert-name", func() string { return unless(o.webhookCertName != "", "must not be empty") }},
		{"webhook-key-name", func() string { return unless(o.webhookKeyName != "", "must not be empty") }},
		{"tls-min-version", func() string { _, err := cliflag.TLSVersion(o.tlsMinVersion); return message(err) }},
		{"tls-cipher-suites", func() string { _, err := cliflag.TLSCipherSuites(o.tlsCipherSuites); return message(err) }},
		{"health-addr", func() string { return address(o.healthAddress) }},
		{"diagnostics-address", func() string { return address(o.diagnosticsAddress) }},
		{"metrics-bind-addr", func() string { return address(o.metricsAddress) }},
		{"profiler-address", func() string { return address(o.profilerAddress) }},
	}
}

func readable(file string) string {
	if file == "" {
		return ""
	}
	_, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Sprintf("file %s does not exist", file)
	}
	return message(err)
}

func unless(holds bool, otherwise string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(otherwise, args...)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
