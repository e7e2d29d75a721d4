package config

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// tokenAnnotation on the Secret with the data of a MachinePool is the ID of the token in the data. Until the first rotation, it is
// missing, and the token is that of kubeadm.TokenIDOf.
const tokenAnnotation = "bootstrap.cluster.x-k8s.io/token-id"

// nextTokenID derives the ID of a config's next token from the current one. A rotation that was interrupted continues with the token
// that it created.
func nextTokenID(uid types.UID, current string) string {
	return kubeadm.TokenID(string(uid) + "/" + current)
}

// poolToken keeps the token in the data of a MachinePool valid, whose machines may join at any time. Until all of them have joined, it
// is renewed; after that, it is replaced by another one when half of its lifetime is over, because anyone with the data could join
// machines with it.
func (c *Controller) poolToken(ctx context.Context, s *scope) (step.Result, error) {
	if !s.initialized() || !isOwnName(s.config, s.secretName()) {
		return step.Stop(), nil
	}
	data, err := c.data(ctx, s)
	if err != nil {
		return step.Stop(), err
	}
	changed := s.specChanged(data)
	if kubeadm.Defined(s.config.Spec.JoinConfiguration.Discovery.File) && !changed {
		return step.Stop(), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		if changed {
			return awaitControlPlane(s, backstop, err.Error()), nil // The data is that of the previous spec.
		}
		return step.WaitAtMost(backstop, err.Error()), nil // as in token
	}
	if err != nil {
		return step.Stop(), err
	}
	id := currentTokenID(s.config, data)
	if changed {
		return c.rotate(ctx, s, id, changed)
	}
	token := &corev1.Secret{}
	err = workload.Get(ctx, tokenKey(id), token)
	switch {
	case apierrors.IsNotFound(err):
		// No machine can join with the data, whether the token was that of a user or expired while no manager was running.
		return c.rotate(ctx, s, id, changed)
	case err != nil:
		return step.Stop(), fmt.Errorf("reading bootstrap token %s: %w", tokenKey(id).Name, failsafe.Redacted(err))
	case string(token.Data[bootstrapapi.BootstrapTokenDescriptionKey]) != tokenDescription:
		return step.Stop(), nil // Tokens of users are up to the user.
	case !complete(s.pool):
		if err := c.prolong(ctx, workload, token); err != nil {
			return step.Stop(), fmt.Errorf("renewing bootstrap token %s: %w", token.Name, failsafe.Redacted(err))
		}
		return step.WaitAtMost(c.tokenTTL/3, "the machines to join"), nil
	}
	expires, err := time.Parse(time.RFC3339, string(token.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil {
		return step.Stop(), nil
	}
	if due := expires.Add(-c.tokenTTL / 2).Sub(c.Clock.Now()); due > 0 {
		return step.WaitAtMost(due, "the token to reach half of its lifetime"), nil
	}
	return c.rotate(ctx, s, id, changed)
}

// specChanged reports whether the data was generated from another spec.
func (s *scope) specChanged(data *corev1.Secret) bool {
	return data != nil && data.Annotations[specAnnotation] != "" && data.Annotations[specAnnotation] != s.hash
}

// currentTokenID returns the ID of the token in the data, which is nil if a user deleted it.
func currentTokenID(config *bootstrapv1.KubeadmConfig, data *corev1.Secret) string {
	if data != nil && data.Annotations[tokenAnnotation] != "" {
		return data.Annotations[tokenAnnotation]
	}
	return kubeadm.TokenIDOf(config)
}

// rotate creates the next token, and replaces the data by data with it. The Secret keeps its name, because infrastructure providers
// read it for every new machine. Only data of a changed spec gets a Secret of another name: they replace machines then.
func (c *Controller) rotate(ctx context.Context, s *scope, current string, changed bool) (step.Result, error) {
	join, err := joinConfiguration(s)
	if err != nil {
		return step.Stop(), c.failed(s, err)
	}
	if !changed {
		join.Discovery.BootstrapToken.Token = "" // It expired, or is about to.
	}
	files, err := c.discoveryFile(ctx, s, join)
	if err != nil {
		return step.Stop(), c.failed(s, err)
	}
	next := nextTokenID(s.config.UID, current)
	if err := c.discovery(ctx, s, join, next); err != nil {
		return step.Stop(), err
	}
	if token := join.Discovery.BootstrapToken.Token; changed && token != "" {
		next, _, _ = strings.Cut(token, ".") // It may be that of a user.
	}
	data, err := c.joinData(ctx, s, join, files)
	if err != nil {
		return step.Stop(), c.failed(s, err)
	}
	secret := dataSecret(s, data)
	annotate(s, secret)
	if changed {
		secret.Name = nameAfterChange(s.config, secret.Annotations[specAnnotation])
	} else if err := c.deletePrevious(ctx, s); err != nil {
		return step.Stop(), err
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, tokenAnnotation, next)
	if result, err := c.replace(ctx, s, secret); err != nil || result.Ends() {
		return result, err
	}
	markReady(s.config, secret.Name)
	return step.WaitAtMost(c.tokenTTL/2, "the token to reach half of its lifetime"), nil
}

// replace replaces the Secret with the data, or creates it if a user deleted it.
func (c *Controller) replace(ctx context.Context, s *scope, secret *corev1.Secret) (step.Result, error) {
	live := &corev1.Secret{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(secret), live)
	switch {
	case apierrors.IsNotFound(err):
		err = c.CreateIn(ctx, nil, secret)
	case err != nil:
		return step.Stop(), fmt.Errorf("reading Secret %s: %w", secret.Name, err)
	case !metav1.IsControlledBy(live, s.config):
		return nameTaken(s, secret.Name, "it does not belong to this KubeadmConfig; delete it, or use another name for the config"), nil
	default:
		live.Data = secret.Data
		for _, key := range []string{tokenAnnotation, specAnnotation} {
			metav1.SetMetaDataAnnotation(&live.ObjectMeta, key, secret.Annotations[key])
		}
		err = c.Client.Update(ctx, live)
	}
	if err != nil {
		return step.Stop(), c.failed(s, fmt.Errorf("writing Secret %s: %w", secret.Name, failsafe.Redacted(err)))
	}
	return step.Done(), nil
}
