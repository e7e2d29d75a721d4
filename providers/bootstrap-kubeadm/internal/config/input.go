package config

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// input returns the input that init and join data have in common. text is kubeadm's configuration.
func (c *Controller) input(ctx context.Context, s *scope, certificates []bootstrapv1.File, text string) (bootstrapdata.Input, error) {
	spec := s.config.Spec.DeepCopy()
	from := c.sources(s.config.Namespace)
	if err := c.contents(ctx, s, spec.Files, from); err != nil {
		return bootstrapdata.Input{}, err
	}
	for i := range spec.Users {
		if u := spec.Users[i].PasswdFrom; kubeadm.Defined(u) {
			passwd, err := from.value(ctx, u.Secret.Name, u.Secret.Key)
			if err != nil {
				return bootstrapdata.Input{}, fmt.Errorf("spec.users[%d].passwdFrom: %w", i, err)
			}
			spec.Users[i].Passwd = passwd
		}
	}
	in := bootstrapdata.Of(spec)
	in.Certificates, in.Kubeadm = certificates, text
	if s.older.NTP != nil && in.NTP == nil {
		in.NTP = &bootstrapv1.NTP{} // In v1beta1, it may be empty: the time service with its defaults.
	}
	return in, nil
}

// contents sets the contents of files that come from Secrets or are templates.
func (c *Controller) contents(ctx context.Context, s *scope, files []bootstrapv1.File, from sources) error {
	version := sync.OnceValues(func() (string, error) { return c.controlPlaneVersion(ctx, s) })
	size := 0
	for i := range files {
		f := &files[i]
		if kubeadm.Defined(f.ContentFrom) {
			content, err := from.value(ctx, f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)
			if err != nil {
				return fmt.Errorf("spec.files[%d].contentFrom: %w", i, err)
			}
			f.Content = content
		}
		if f.ContentFormat == bootstrapv1.FileContentFormatTemplate {
			if err := renderContent(f, version); err != nil {
				return fmt.Errorf("spec.files[%d]: %w", i, err)
			}
		}
		if size += len(f.Content); size > corev1.MaxSecretSize {
			return mistake{fmt.Errorf("spec.files: more than %d bytes, the maximum size of the Secret with the bootstrap data: "+
				"put large files into the machine's image, or fetch them in spec.preKubeadmCommands", corev1.MaxSecretSize)}
		}
	}
	return nil
}

// sources reads users' Secrets, which are not cached, each once.
type sources struct {
	live      client.Reader
	namespace string
	read      map[string]*corev1.Secret
}

func (c *Controller) sources(namespace string) sources {
	return sources{live: c.Live, namespace: namespace, read: map[string]*corev1.Secret{}}
}

// value returns the value of a key of a Secret. Errors contain both, but no data of the Secret.
func (s sources) value(ctx context.Context, name, key string) (string, error) {
	secret, ok := s.read[name]
	if !ok {
		secret = &corev1.Secret{}
		if err := s.live.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, secret); err != nil {
			return "", fmt.Errorf("reading Secret %s: %w", name, err)
		}
		s.read[name] = secret
	}
	value, ok := secret.Data[key]
	if !ok {
		return "", fmt.Errorf("Secret %s has no key %q", name, key)
	}
	if !utf8.Valid(value) {
		return "", fmt.Errorf("Secret %s, key %q, is not text: encode it as base64, and set the file's encoding", name, key)
	}
	return string(value), nil
}
