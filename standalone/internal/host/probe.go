package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
)

const (
	// startingPeriod is the probe period of a component that is not ready. Probes stay in the process and cost next to
	// nothing, and users wait for the result.
	startingPeriod = 50 * time.Millisecond
	defaultPeriod  = 10 * time.Second
	probeTimeout   = 5 * time.Second
)

// prober runs the readinessProbe of a component's container.
type prober struct {
	url       string
	period    time.Duration
	threshold int32
	client    *http.Client
	clock     clock.WithTicker
}

// newProber returns a prober, or nil for a container without an HTTP readiness probe, which is ready as soon as it runs.
func newProber(container corev1.Container, l *listeners, clk clock.WithTicker) *prober {
	probe := container.ReadinessProbe
	if probe == nil || probe.HTTPGet == nil {
		return nil
	}
	p := &prober{period: defaultPeriod, threshold: 3, clock: clk}
	if probe.PeriodSeconds > 0 {
		p.period = time.Duration(probe.PeriodSeconds) * time.Second
	}
	if probe.FailureThreshold > 0 {
		p.threshold = probe.FailureThreshold
	}
	scheme := strings.ToLower(string(probe.HTTPGet.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	port := portName(container, probe.HTTPGet.Port)
	p.url = scheme + "://" + podIP + "/" + strings.TrimPrefix(probe.HTTPGet.Path, "/")
	p.client = &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // kubelets do not verify certificates of probes either
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			if err := l.deliver(ctx, port, theirs, nil); err != nil {
				return nil, err
			}
			return ours, nil
		},
	}}
	return p
}

// run reports every change of the result, until the context ends. The text is why the component is not ready.
func (p *prober) run(ctx context.Context, report func(ready bool, why string)) {
	ready, failures := false, int32(0)
	for {
		err := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			failures = 0
			if !ready {
				ready = true
				report(true, "")
			}
		case ready:
			if failures++; failures >= p.threshold {
				ready, failures = false, 0
				report(false, err.Error())
			}
		case errors.As(err, new(notReadyError)):
			report(false, "it is starting")
		default:
			report(false, err.Error())
		}
		period := startingPeriod
		if ready {
			period = p.period
		}
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(period):
		}
	}
}

// notReadyError is the answer of a component that runs, and is not ready: usual for a moment while it starts.
type notReadyError struct{ status string }

// Error implements error.
func (e notReadyError) Error() string { return "its readiness probe fails: " + e.status }

// ask makes one request.
func (p *prober) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return fmt.Errorf("readiness probe: %w", err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("readiness probe: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return notReadyError{status: response.Status}
	}
	return nil
}

// portName returns the name of a container's port, given by name or number. A number that the container does not list is
// returned unchanged.
func portName(container corev1.Container, port intstr.IntOrString) string {
	if port.Type == intstr.String {
		return port.StrVal
	}
	for _, listed := range container.Ports {
		if listed.ContainerPort == port.IntVal && listed.Name != "" {
			return listed.Name
		}
	}
	return port.String()
}
