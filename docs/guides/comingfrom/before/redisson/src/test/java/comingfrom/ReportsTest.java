package comingfrom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeDefinition;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeySchemaElement;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;

/** Tries the program on the Redis of -Dredis and the engine of -Dendpoint. */
final class ReportsTest {
    private static DynamoDbClient db;
    private static RedissonClient one;
    private static RedissonClient two;

    @BeforeAll
    static void open() {
        db = DynamoDbClient.builder()
                .endpointOverride(URI.create(System.getProperty("endpoint"))).region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("holdall", "holdall")))
                .build();
        db.createTable(table -> table.tableName("reports").billingMode(BillingMode.PAY_PER_REQUEST)
                .attributeDefinitions(AttributeDefinition.builder().attributeName("ID").attributeType(ScalarAttributeType.S).build())
                .keySchema(KeySchemaElement.builder().attributeName("ID").keyType(KeyType.HASH).build()));
        db.waiter().waitUntilTableExists(table -> table.tableName("reports"));
        one = host();
        two = host();
    }

    @AfterAll
    static void close() {
        one.shutdown();
        two.shutdown();
        db.close();
    }

    /** A report of a host that lost its lock is refused once another has published. */
    @Test
    void aLateReportIsRefused() {
        assertFalse(new Reports(one, db).publish("july", () -> {
            assertTrue(two.getFencedLock("report:july").forceUnlock()); // as if the lease had ended
            assertTrue(new Reports(two, db).publish("july", () -> "new"));
            return "old";
        }));
        assertEquals("new", published("july"));
        assertTrue(new Reports(one, db).publish("july", () -> "newer"));
        assertEquals("newer", published("july"));
    }

    /** A job runs on one host at a time. */
    @Test
    void aJobRunsOnOneHost() throws Exception {
        assertTrue(new Reports(one, db).nightly(() -> {
            try {
                assertFalse(new Reports(two, db).nightly(() -> {}));
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }));
        assertTrue(new Reports(two, db).nightly(() -> {}));
    }

    private static RedissonClient host() {
        Config config = new Config();
        config.useSingleServer().setAddress(System.getProperty("redis")).setConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        return Redisson.create(config);
    }

    private static String published(String report) {
        return db.getItem(request -> request.tableName("reports").key(Map.of("ID", AttributeValue.fromS(report))).consistentRead(true))
                .item().get("Text").s();
    }
}
