package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/minio/minio-go/v7"
)

// consequences are the types of the errors that services send, by code. Others are found by their HTTP status.
var consequences = map[string]error{
	"AccessDenied":                   ErrCredentials,
	"AccountProblem":                 ErrCredentials,
	"AllAccessDisabled":              ErrCredentials,
	"ExpiredToken":                   ErrCredentials,
	"InvalidAccessKeyId":             ErrCredentials,
	"InvalidToken":                   ErrCredentials,
	"RequestTimeTooSkewed":           ErrCredentials,
	"SignatureDoesNotMatch":          ErrCredentials,
	"NoSuchBucket":                   ErrNoBucket,
	"InvalidBucketName":              ErrNoBucket,
	"NoSuchKey":                      ErrNotFound,
	"NoSuchUpload":                   ErrNotFound,
	"InsufficientStorage":            ErrFull,
	"QuotaExceeded":                  ErrFull,
	"XMinioStorageFull":              ErrFull,
	"XMinioAdminBucketQuotaExceeded": ErrFull,
	"EntityTooLarge":                 ErrFull,
	"SlowDown":                       ErrUnreachable,
	"InternalError":                  ErrUnreachable,
	"ServiceUnavailable":             ErrUnreachable,
	"RequestTimeout":                 ErrUnreachable,
	"TooManyRequests":                ErrUnreachable,
	"XMinioServerNotInitialized":     ErrUnreachable,
	"XAmzContentSHA256Mismatch":      ErrUnreachable,
}

// maxMessage is how much of a service's message is in an error, in bytes.
const maxMessage = 300

// typeOf returns an error of the client with its type. What a service sends is shortened, and never has a secret.
func (s *S3) typeOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var response minio.ErrorResponse
	if errors.As(err, &response) && response.StatusCode != 0 {
		text := s.clean(response.Code + ": " + response.Message)
		if kind := kindOf(response); kind != nil {
			return fmt.Errorf("%w: %s", kind, text)
		}
		return fmt.Errorf("the store responds with %d %s", response.StatusCode, text)
	}
	// The text of a url.Error has the URL, which is long, and for signed ones a secret.
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if response.Code != "" && response.StatusCode == 0 {
		return fmt.Errorf("the request is invalid: %s", s.clean(response.Code+": "+response.Message))
	}
	if errors.Is(err, ErrAddress) {
		return fmt.Errorf("connecting to the store: %w", err)
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, s.clean(err.Error()))
}

// kindOf returns the type of an error that a service has sent, or nil.
func kindOf(response minio.ErrorResponse) error {
	if kind, known := consequences[response.Code]; known {
		return kind
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return ErrCredentials
	case http.StatusInsufficientStorage:
		return ErrFull
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return ErrUnreachable
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return ErrUnreachable
	}
	return nil
}

// clean returns a text of a service for an error: one short line without secrets.
func (s *S3) clean(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "(secret)")
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
