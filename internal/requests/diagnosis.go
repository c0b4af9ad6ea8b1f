package requests

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// codes of errors that have more than one name, or none in the SDK.
const (
	codeAbsent     = "ResourceNotFoundException"
	codeDenied     = "AccessDeniedException"
	codeInvalid    = "ValidationException"
	codeConflict   = "TransactionConflictException"
	codeReplicated = "ReplicatedWriteConflictException"
	codeLimit      = "LimitExceededException"
)

// Codes by which AWS rejects the credentials of a request, whatever it asks for.
var (
	unknownKeyCodes = []string{"UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "InvalidAccessKeyIdException"}
	signatureCodes  = []string{"InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature", "IncompleteSignatureException"}
	unsignedCodes   = []string{"MissingAuthenticationToken", "MissingAuthenticationTokenException"}
	expiredCodes    = []string{"ExpiredTokenException", "ExpiredToken"} // the SDK fetches others if it knows where
	accountCodes    = []string{"SubscriptionRequiredException", "SubscriptionRequired", "OptInRequired", "OptInRequiredException"}
)

// errorCodes are the codes that errors have for reasons of cancelled transactions, and for errors of
// statements, which are named otherwise.
var errorCodes = map[string]string{
	"ResourceNotFound": codeAbsent, "AccessDenied": codeDenied, reasonInvalid: codeInvalid, reasonConflict: codeConflict,
	reasonThroughput: "ProvisionedThroughputExceededException",
}

// codeOf is the code of a reason, as an error of its own would have it.
func codeOf(reason string) string { return cmp.Or(errorCodes[reason], reason) }

// codesOf are the codes of an error: of a cancelled transaction those of its reasons.
func codesOf(err error) (codes []string) {
	var canceled *types.TransactionCanceledException
	var api smithy.APIError
	switch {
	case errors.As(err, &canceled):
		for _, r := range canceled.CancellationReasons {
			if Code(r) != ReasonNone {
				codes = append(codes, codeOf(Code(r)))
			}
		}
	case errors.As(err, &api):
		codes = []string{api.ErrorCode()}
	}
	return codes
}

// ConcernsAll reports whether a request failed for a reason that it shares with every other one
// of this process, whatever the table: nothing can be sent, or the credentials are rejected.
func ConcernsAll(err error) bool {
	var other *foreignError
	switch {
	case isUnsent(err):
		return !neverSent(err)
	case errors.As(err, &other):
		return other.unreached
	}
	return isSignedAtAnotherTime(err) || slices.ContainsFunc(codesOf(err), rejectsCredentials)
}

func rejectsCredentials(code string) bool {
	return slices.Contains(slices.Concat(unknownKeyCodes, signatureCodes, unsignedCodes, expiredCodes, accountCodes), code)
}

// explain says what is wrong and what to do, around what an error says itself.
func explain(err error) string {
	said := Said(err)
	var other *foreignError
	switch {
	case ConcernsAll(err):
		problem, do := whyAll(err)
		return fmt.Sprintf("%s (%s): %s", problem, said, do)
	case isEntityTooLarge(err):
		return "the request is too large: " + said
	case errors.As(err, &other):
		problem, do := other.diagnosis()
		return fmt.Sprintf("%s (%s): %s", problem, said, do)
	}
	for _, code := range codesOf(err) {
		if text := explained(code, said); text != said {
			return text
		}
	}
	return said
}

// whyAll says what is wrong with every request of this process, and what to do: [ConcernsAll] is true.
func whyAll(err error) (problem, do string) {
	var other *foreignError
	switch {
	case isUnsent(err):
		problem, do = whyUnsent(err)
		return "nothing can be sent: " + problem, do
	case errors.As(err, &other):
		return other.diagnosis()
	case isSignedAtAnotherTime(err):
		return clockText(err), "set it, and keep it right by NTP"
	}
	for _, code := range codesOf(err) {
		if rejectsCredentials(code) {
			return diagnose(code, "")
		}
	}
	return "", ""
}

// explained is a code's text with its diagnosis, if there is one.
func explained(code, said string) string {
	problem, do := diagnose(code, said)
	if problem == "" {
		return said
	}
	return fmt.Sprintf("%s (%s): %s", problem, said, do)
}

// whyUnsent says why a sending did not leave this process, and what to do.
func whyUnsent(err error) (problem, do string) {
	var dns *net.DNSError
	credentials := strings.Contains(err.Error(), "get identity: ") || errors.As(err, new(*v4.SigningError))
	switch {
	case hasNoRegion(err):
		return "no Region is set", "set AWS_REGION, or the Region of the aws.Config"
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("there is no host %q", dns.Name), "correct the Region or the endpoint"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "the endpoint's certificate is not trusted", "correct the endpoint, or trust the authority of its certificate"
	case credentials && mayLeaveLater(err):
		return "the credentials cannot be fetched", "see whether this host reaches the service that gives it credentials"
	case credentials:
		return "there are no credentials", "give this process credentials: by its environment, a profile or a role"
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %q cannot be looked up", dns.Name), "see whether this host's DNS works"
	case mayLeaveLater(err):
		return "DynamoDB cannot be connected to", "see whether this host reaches the endpoint"
	case wantsProxyPassword(err):
		return "a proxy asks for a user and a password", adviceOnProxy
	case isOfAnotherProtocol(err):
		return fmt.Sprintf("the endpoint%s does not speak HTTPS", addressOf(err)), "begin the endpoint with http://, or correct its port"
	case strings.Contains(err.Error(), invalidHeader):
		return "a header has a character that is not allowed, such as a line break", "correct the credentials and the Region"
	case errors.As(err, new(*net.AddrError)), strings.Contains(err.Error(), "endpoint"), strings.Contains(err.Error(), "region"), isMalformed(err):
		return fmt.Sprintf("the endpoint%s is wrong", addressOf(err)), "correct the Region and the settings of the endpoint"
	}
	return "the request cannot be made", "correct the configuration of the AWS SDK"
}

// addressOf is the address to which a request was to be sent, behind a space, if its error names it.
func addressOf(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		return fmt.Sprintf(" %q", request.URL)
	}
	return ""
}

// What AWS says when it denies an action (IAM User Guide, "Troubleshoot access denied error messages").
var (
	permission = regexp.MustCompile(`to perform: ([\w:]+)`)
	forbidding = regexp.MustCompile(`explicit deny in an? ([\w -]*?policy|permissions boundary)`)
	lacking    = regexp.MustCompile(`no ([\w -]*?policy|permissions boundary) allows`)
)

// toAllow says what to do about an action that AWS denies: an allowance is of no use where a policy
// forbids the action, or where another than the process's own has to allow it, too.
func toAllow(action, said string) string {
	if found := permission.FindStringSubmatch(said); found != nil {
		action = found[1]
	}
	if found := forbidding.FindStringSubmatch(said); found != nil {
		return fmt.Sprintf("change the %s that forbids %s: no other policy can allow it", found[1], action)
	}
	if found := lacking.FindStringSubmatch(said); found != nil {
		return fmt.Sprintf("allow %s in the %s", action, found[1])
	}
	return "allow " + action
}

// diagnose says what an error of this code usually comes from, and what to do; nothing if that is
// not known.
func diagnose(code, said string) (problem, do string) {
	switch {
	case isOfKMS(code, said):
		do = "allow this process to use it"
		if strings.Contains(said, "kms:") {
			do = toAllow("its use", said)
		}
		return "its encryption key cannot be used", "enable the table's KMS key, and " + do
	case code == codeDenied:
		return "may not be accessed", toAllow("what `holdall init --print iam` prints", said)
	case code == codeAbsent:
		return "does not exist", "create it, or correct its name, the Region or the account"
	case slices.Contains(unknownKeyCodes, code):
		return "the credentials were rejected: AWS does not know the access key, or its session token is not valid",
			"correct the credentials; those of another account, Region or partition are not valid here"
	case slices.Contains(signatureCodes, code):
		return "the credentials were rejected: the signature is wrong", "correct the secret access key; a proxy must not change requests"
	case slices.Contains(unsignedCodes, code):
		return "the request had no credentials", "give this process credentials: by its environment, a profile or a role"
	case slices.Contains(expiredCodes, code):
		return "the credentials have expired", "renew them"
	case slices.Contains(accountCodes, code):
		return "the account may not use DynamoDB here", "complete the sign-up of the account, and enable the Region for it"
	case code == codeLimit:
		return "a limit of the account is reached", "wait until other operations on its tables are over, or have the limit raised"
	case code == codeReplicated:
		return "a write in another Region is in the way", "write each item in one Region at a time"
	case code == codeInvalid && isKeyMismatch(said):
		return "its keys are not those of the request", "name a table that has them"
	}
	return "", ""
}

// isOfKMS reports whether a table's encryption key is at fault.
func isOfKMS(code, said string) bool {
	return strings.HasPrefix(strings.ToUpper(code), "KMS") || code == "InaccessibleEncryptionCredentialsException" ||
		code == codeDenied && slices.ContainsFunc([]string{"kms:", "KMS key", "customer master key"}, func(words string) bool {
			return strings.Contains(said, words)
		})
}

// isKeyMismatch reports whether DynamoDB says that a key is not one of a table's. It has no code
// of its own for that.
func isKeyMismatch(said string) bool {
	return slices.ContainsFunc([]string{
		"key element does not match", "Missing the key ", "Type mismatch for key", "number of conditions on the keys is invalid",
		"missed key schema element", "data type should match its data type in table's schema", "equality on all key attributes",
	}, func(words string) bool { return strings.Contains(said, words) })
}
