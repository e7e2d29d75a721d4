package rotation

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Ends of the keys of the Secret of a rotation, after the name of an authority.
const (
	oldSuffix, newSuffix, keySuffix = ".old.crt", ".new.crt", ".new.key"
)

// ownName returns the name of the Secret of a rotation.
func ownName(r *fleetv1.CertificateAuthorityRotation) string {
	return naming.WithSuffix(r.Name, "rotation")
}

// generate creates the Secret of the rotation, with all new keys and all old certificates. It is one request, and the name derives from
// that of the rotation: whenever this is interrupted, there are either no new keys, or all.
func (c *Controller) generate(ctx context.Context, s *scope) (step.Result, error) {
	if s.own == nil {
		data := map[string][]byte{}
		for _, a := range s.authorities() {
			change, err := authority.Generate(a, s.secrets[a].Data[pki.CertificateKey], pki.KeyAlgorithm(s.rotation.Spec.KeyAlgorithm), s.now)
			if err != nil {
				return step.Done(), fmt.Errorf("%s: %w", a, err)
			}
			data[string(a)+oldSuffix], data[string(a)+newSuffix], data[string(a)+keySuffix] = change.Old, change.New.Certificate, change.New.Key
		}
		own := ownSecret(s.rotation, data)
		if err := c.CreateIn(ctx, nil, own); err != nil {
			return step.Done(), fmt.Errorf("creating Secret %s: %w", own.Name, failsafe.Redacted(err))
		}
		s.own, s.changes = own, changesOf(own)
	}
	s.rotation.Status.Phase = fleetv1.OperationPhaseRunning
	s.rotation.Status.Authorities = nil
	for _, a := range s.authorities() {
		change, ok := s.changes[a]
		if !ok {
			return step.Done(), fmt.Errorf("Secret %s has no data of %s: restore it from a backup", s.own.Name, a)
		}
		s.rotation.Status.Authorities = append(s.rotation.Status.Authorities, fleetv1.AuthorityStatus{
			Name: a, Old: authority.Fingerprint(a, change.Old), New: authority.Fingerprint(a, change.New.Certificate),
		})
	}
	return step.Done(), nil
}

func ownSecret(r *fleetv1.CertificateAuthorityRotation, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: ownName(r),
			Labels: map[string]string{clusterv1.ClusterNameLabel: r.Spec.ClusterName},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(r, fleetv1.GroupVersion.WithKind(fleetv1.CertificateAuthorityRotationKind), true),
			},
		},
		Type: clusterv1.ClusterSecretType,
		Data: data,
	}
}

// changesOf returns the content of the Secret of a rotation.
func changesOf(own *corev1.Secret) map[fleetv1.Authority]authority.Change {
	all := map[fleetv1.Authority]authority.Change{}
	for key, certificate := range own.Data {
		name, ok := strings.CutSuffix(key, newSuffix)
		if !ok {
			continue
		}
		all[fleetv1.Authority(name)] = authority.Change{
			Old: own.Data[name+oldSuffix], New: pki.Pair{Certificate: certificate, Key: own.Data[name+keySuffix]},
		}
	}
	return all
}
