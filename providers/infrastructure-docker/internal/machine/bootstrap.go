package machine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// bootstrapping is the job that runs the bootstrap data.
	bootstrapping = "bootstrap"
	// firstRetry and lastRetry are the limits of the backoff between attempts. Nothing announces that another one may succeed.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
	// maxEvent is the length of the log in an event, and maxMessage of a message without a log. Events have at most 1024 bytes.
	maxEvent, maxMessage = 700, 1000
	// maxLine is the length of a line of the log in a condition.
	maxLine = 250
)

// bootstrap runs the bootstrap data in the container, once. The job asks for the first attempt, and so gets the result of the last
// one if there were attempts before this process started.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	key := s.jobKey(bootstrapping)
	if s.HadContainer() {
		c.jobs.Forget(key)
		return step.Done(), nil
	}
	attempt := c.attempt(s, 1)
	if left, failed := c.retryIn(attempt); failed && left <= 0 {
		c.jobs.Forget(key)
		attempt = c.attempt(s, attempt.Result.Number+1)
	} else if failed {
		return c.bootstrapFailed(ctx, s, attempt.Result, left)
	}
	switch {
	case attempt.Running:
		return working(s, dockerv1.BootstrapExecSucceededV1Beta1Condition, dockerv1.BootstrappingV1Beta1Reason,
			"the bootstrap data to run in container "+s.Container()), nil
	case attempt.Err != nil:
		return retried(ctx, s, dockerv1.BootstrapExecSucceededV1Beta1Condition, dockerv1.BootstrapFailedV1Beta1Reason, attempt), nil
	}
	if attempt.Result.Code != 0 {
		step.Warning(ctx, dockerv1.BootstrapFailedV1Beta1Reason, "The machine has bootstrapped, but then %s. %s",
			attempt.Result.Why(), c.excerpt(s, attempt.Result))
	}
	return step.Done(), nil
}

// attempt starts the job, unless there is one.
func (c *Controller) attempt(s *scope, number int) job.State[bootstrap.Result] {
	secret := client.ObjectKey{Namespace: s.machine.Namespace, Name: s.data}
	container, timeout := s.Container(), dockerv1.DefaultBootstrapTimeout
	if t := s.obj.Spec.BootstrapTimeout; t != nil && t.Duration > 0 {
		timeout = t.Duration
	}
	return job.Run(c.jobs, s.jobKey(bootstrapping), func(ctx context.Context) (bootstrap.Result, error) {
		data := &corev1.Secret{}
		if err := c.Live.Get(ctx, secret, data); err != nil {
			return bootstrap.Result{}, fmt.Errorf("reading bootstrap data Secret %s: %w", secret, err)
		}
		plan, err := bootstrap.Read(data.Data["value"], string(data.Data["format"]))
		if err != nil {
			return bootstrap.Result{}, fmt.Errorf("reading key value of Secret %s: %w", secret, err)
		}
		return bootstrap.Run(ctx, c.engine, container, plan, number, timeout)
	})
}

// retryIn reports whether an attempt failed, and in which time the next one is due.
func (c *Controller) retryIn(attempt job.State[bootstrap.Result]) (left time.Duration, failed bool) {
	if attempt.Running || attempt.Err != nil || attempt.Result.Bootstrapped {
		return 0, false
	}
	pause := firstRetry
	for range min(attempt.Result.Number-1, 10) {
		pause = min(2*pause, lastRetry)
	}
	return attempt.Ended.Add(pause).Sub(c.Clock.Now()), true
}

// bootstrapFailed reports a failed attempt: in one line in the condition, with the end of the log in an event.
func (c *Controller) bootstrapFailed(ctx context.Context, s *scope, r bootstrap.Result, left time.Duration) (step.Result, error) {
	message := fmt.Sprintf("Attempt %d failed: %s", r.Number, r.Why())
	if line := telling(r.Log); line != "" {
		message += ": " + line
	}
	is := condition.False(dockerv1.BootstrapExecSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		dockerv1.BootstrapFailedV1Beta1Reason, "%s", message)
	if before := condition.Get(s.obj.Object, dockerv1.BootstrapExecSucceededV1Beta1Condition); before == nil || before.Message != is.Message {
		step.Warning(ctx, dockerv1.BootstrapFailedV1Beta1Reason, "Attempt %d failed: %s. %s", r.Number, r.Why(), c.excerpt(s, r))
	}
	return step.WaitAtMost(left, fmt.Sprintf("attempt %d to bootstrap", r.Number+1)).WithConditions(is), nil
}

// excerpt returns where the log is, and its end.
func (c *Controller) excerpt(s *scope, r bootstrap.Result) string {
	log := strings.TrimSpace(redact(r.Log))
	if len(log) > maxEvent {
		log = strings.ToValidUTF8("..."+log[len(log)-maxEvent:], "")
	}
	return fmt.Sprintf("See \"docker exec %s cat %s\", which ends with:\n%s", s.Container(), bootstrap.LogPath, log)
}

// telling returns the line of a log that tells most: the last one that is not a hint or the summary of the script.
func telling(log string) string {
	lines := strings.Split(redact(log), "\n")
	for _, line := range slices.Backward(lines) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.HasPrefix(line, "Failed: exit code") || strings.HasPrefix(line, "Failed: time limit") ||
			strings.HasPrefix(line, "To see the stack trace") || strings.HasPrefix(line, "[preflight] If you know") {
			continue
		}
		return condition.Truncate(line, maxLine)
	}
	return ""
}

// secrets matches what looks like a secret in logs: keys and certificates, bootstrap tokens, keys of kubeadm, credentials in URLs, and
// passwords.
func secrets() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)`),
		regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`),
		regexp.MustCompile(`\b[0-9a-f]{64}\b`),
		regexp.MustCompile(`//[^/\s@]+@`),
		regexp.MustCompile(`(?i)\b(password|passwd|secret|token|authorization)["']?\s*[=:]\s*\S+`),
	}
}

// redact replaces what looks like a secret in a log. Only users who may run commands in the container see it.
func redact(log string) string {
	const redacted = "[redacted]"
	for _, secret := range secrets() {
		log = secret.ReplaceAllLiteralString(log, redacted)
	}
	// Base64 has upper case letters and digits, paths of files usually do not.
	return regexp.MustCompile(`[A-Za-z0-9+/=]{40,}`).ReplaceAllStringFunc(log, func(text string) string {
		if strings.ContainsAny(text, "0123456789") && strings.ToLower(text) != text {
			return redacted
		}
		return text
	})
}
