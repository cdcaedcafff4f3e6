#!/usr/bin/env bash
# A real S3 server for the tests. S3Proxy checks signatures, and creates an object that must not exist with a hard link,
# so that exactly one of many writers wins. A bucket is a folder in DIR/data.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# A bucket and credentials of the environment are used here too, so that `environment` always describes this server.
bucket=${SWITCHBOARD__FILES__BUCKET:-switchboard}
region=${SWITCHBOARD__FILES__REGION:-us-east-1}
access_key_id=${SWITCHBOARD__FILES__ACCESS_KEY_ID:-switchboard}
secret_access_key=${SWITCHBOARD__FILES__SECRET_ACCESS_KEY:-secret-of-the-tests}

write_configuration() {
  mkdir -p "$dir/data/$bucket"
  cat > "$dir/s3proxy.properties" <<P
s3proxy.endpoint=http://127.0.0.1:$port
s3proxy.authorization=aws-v4
s3proxy.identity=$access_key_id
s3proxy.credential=$secret_access_key
jclouds.provider=filesystem
jclouds.filesystem.basedir=$dir/data
P
  cat > "$dir/logback.xml" <<X
<configuration><appender name="S" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %p %c{1}: %m%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="S"/></root></configuration>
X
}

start() {
  local libs
  libs=$(maven_jars s3 "$HERE/s3-pom.xml")
  write_configuration
  cd "$dir"
  # The server keeps the content of a signed request in memory until it has checked the signature.
  setsid nohup "${JAVA[@]}" -Xms32m -Xmx384m -cp "$libs/*" -Dlogback.configurationFile="$dir/logback.xml" \
    org.gaul.s3proxy.Main --properties "$dir/s3proxy.properties" >"$dir/s3.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  wait_for 60 "$(cat "$dir/pid")" "$dir/s3.log" answers "http://127.0.0.1:$port" || die "the S3 server does not answer on port $port"
}

# answers ENDPOINT : lists the bucket with a signed request. The credentials are not among the arguments of curl, which
# every user of the machine can read. Some versions of curl sign the hash of the content without sending it.
answers() {
  printf 'user = "%s:%s"\n' "$access_key_id" "$secret_access_key" \
    | curl -fsS -m 5 -o /dev/null --aws-sigv4 "aws:amz:$region:s3" -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -K - \
      "$1/$bucket?list-type=2&max-keys=1"
}

# Prints the settings of the service, except for the endpoint.
print_environment() {
  printf 'export SWITCHBOARD__FILES__%s=%q\n' BUCKET "$bucket" REGION "$region" \
    ACCESS_KEY_ID "$access_key_id" SECRET_ACCESS_KEY "$secret_access_key"
}

command=${1:?start, stop, answers or environment} dir=${2:?folder}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
case $command in
  start) port=${3:?port}; start ;;
  stop) stop_service "$dir" ;;
  answers) answers "${3:?endpoint}" ;;
  environment) print_environment ;;
  *) die "start, stop, answers or environment, not '$command'" ;;
esac
