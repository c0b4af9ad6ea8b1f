package comingfrom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.CreateDynamoDBTableOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.model.LockCurrentlyUnavailableException;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeDefinition;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeySchemaElement;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.ProvisionedThroughput;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;
import software.amazon.awssdk.services.dynamodb.model.TransactionCanceledException;

/** Tries the program, and what the page says of the library, on the engine of -Dendpoint. */
final class PaymentsTest {
    private static final List<String> ACCOUNTS = List.of("a", "b", "c", "d");
    private static DynamoDbClient db;

    private final List<AmazonDynamoDBLockClient> hosts = new ArrayList<>();

    @BeforeAll
    static void createTables() {
        db = DynamoDbClient.builder()
                .endpointOverride(URI.create(System.getProperty("endpoint"))).region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("holdall", "holdall")))
                .build();
        AmazonDynamoDBLockClient.createLockTableInDynamoDB(CreateDynamoDBTableOptions
                .builder(db, ProvisionedThroughput.builder().readCapacityUnits(1000L).writeCapacityUnits(1000L).build(), "oldlocks")
                .build());
        db.createTable(table -> table.tableName("accounts").billingMode(BillingMode.PAY_PER_REQUEST)
                .attributeDefinitions(AttributeDefinition.builder().attributeName("ID").attributeType(ScalarAttributeType.S).build())
                .keySchema(KeySchemaElement.builder().attributeName("ID").keyType(KeyType.HASH).build()));
        db.waiter().waitUntilTableExists(table -> table.tableName("oldlocks"));
        db.waiter().waitUntilTableExists(table -> table.tableName("accounts"));
    }

    @AfterAll
    static void close() {
        db.close();
    }

    @BeforeEach
    void open() {
        ACCOUNTS.forEach(account -> put(account, 100, false));
    }

    @AfterEach
    void closeHosts() throws Exception {
        for (AmazonDynamoDBLockClient host : hosts) {
            host.close();
        }
    }

    /** Transfers of two hosts at the same time lose no money, and make none. */
    @Test
    void theSumStaysTheSame() throws Exception {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random draw = new Random(seed);
        long[] want = {100, 100, 100, 100};
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<Boolean>> all = new ArrayList<>();
        List<Payments> programs = List.of(new Payments(db, host(5, true)), new Payments(db, host(5, true)));
        for (int i = 0; i < 40; i++) {
            int from = draw.nextInt(4);
            int to = (from + 1 + draw.nextInt(3)) % 4;
            want[from]--;
            want[to]++;
            Payments program = programs.get(i % 2);
            all.add(threads.submit(() -> program.transfer(ACCOUNTS.get(from), ACCOUNTS.get(to), 1)));
        }
        for (Future<Boolean> one : all) {
            assertTrue(one.get());
        }
        threads.shutdown();
        for (int i = 0; i < 4; i++) {
            assertEquals(want[i], balance(ACCOUNTS.get(i)), "account " + i);
        }
    }

    /** A lock that one host has, another does not get. */
    @Test
    void aLockExcludes() throws Exception {
        AmazonDynamoDBLockClient two = host(5, true);
        AcquireLockOptions atOnce = AcquireLockOptions.builder("job").withShouldSkipBlockingWait(true).build();
        try (LockItem held = host(5, true).acquireLock(AcquireLockOptions.builder("job").build())) {
            assertFalse(held.isExpired());
            assertThrows(LockCurrentlyUnavailableException.class, () -> two.acquireLock(atOnce));
        }
        two.acquireLock(atOnce).close();
    }

    /** Two hosts that take two locks in opposite orders wait for each other until one gives up. */
    @Test
    void oppositeOrdersWaitForEachOther() throws Exception {
        CyclicBarrier bothHaveOne = new CyclicBarrier(2);
        CyclicBarrier bothGaveUp = new CyclicBarrier(2);
        ExecutorService threads = Executors.newFixedThreadPool(2);
        List<Future<Void>> all = new ArrayList<>();
        for (List<String> order : List.of(List.of("x", "y"), List.of("y", "x"))) {
            AmazonDynamoDBLockClient host = host(2, true);
            all.add(threads.submit(() -> {
                try (LockItem first = host.acquireLock(AcquireLockOptions.builder(order.get(0)).build())) {
                    bothHaveOne.await();
                    assertThrows(LockNotGrantedException.class,
                            () -> host.acquireLock(AcquireLockOptions.builder(order.get(1)).build()));
                    bothGaveUp.await();
                    assertFalse(first.isExpired()); // it was held, and renewed, all the while
                }
                return null;
            }));
        }
        for (Future<Void> one : all) {
            one.get();
        }
        threads.shutdown();
    }

    /** A holder that was silent for longer than its lease still writes: nothing refuses it. */
    @Test
    void aLateWriteIsNotRefused() throws Exception {
        LockItem late = host(1, false).acquireLock(AcquireLockOptions.builder("report").build()); // sends no heartbeats
        LockItem successor = host(1, true).acquireLock(AcquireLockOptions.builder("report").build());
        put("a", 7, false); // as the successor
        put("a", 100, false); // as the late holder
        assertEquals(100, balance("a"));
        assertTrue(late.isExpired()); // it could have asked; a process that is suspended cannot
        successor.close();
    }

    /** What units have taken over, this program does not write any more. */
    @Test
    void whatHasMovedIsRefused() throws Exception {
        put("b", 100, true);
        Payments program = new Payments(db, host(5, true));
        assertThrows(TransactionCanceledException.class, () -> program.transfer("a", "b", 1));
        assertEquals(100, balance("a"));
        assertEquals(100, balance("b"));
        assertTrue(program.transfer("a", "c", 1));
    }

    private AmazonDynamoDBLockClient host(long lease, boolean heartbeats) {
        AmazonDynamoDBLockClient host = new AmazonDynamoDBLockClient(AmazonDynamoDBLockClientOptions
                .builder(db, "oldlocks").withOwnerName("host-" + hosts.size() + "-" + System.nanoTime())
                .withTimeUnit(TimeUnit.MILLISECONDS).withLeaseDuration(lease * 1000).withHeartbeatPeriod(lease * 200)
                .withCreateHeartbeatBackgroundThread(heartbeats).build());
        hosts.add(host);
        return host;
    }

    private static void put(String account, long balance, boolean moved) {
        Map<String, AttributeValue> item = new HashMap<>(Payments.id(account));
        item.put("Balance", AttributeValue.fromN(Long.toString(balance)));
        if (moved) {
            item.put("Moved", AttributeValue.fromBool(true));
        }
        db.putItem(request -> request.tableName("accounts").item(item));
    }

    private static long balance(String account) {
        return Long.parseLong(db.getItem(request -> request.tableName("accounts").key(Payments.id(account)).consistentRead(true))
                .item().get("Balance").n());
    }
}
